# SPDX-License-Identifier: MIT
# Procedures, errors, coroutines, channels, events, threads of the notifier.
proc deep {n} {
	if {$n == 0} { error bottom }
	try { return [expr {[deep [expr {$n - 1}]] + 1}] } finally { incr ::finally }
}
set finally 0
foreach n {1 20 200} {
	if {[catch {deep $n} message options]} { puts "$message $finally [dict get $options -code]" }
}
proc generator {n} {
	yield
	for {set i 0} {$i < $n} {incr i} { yield [expr {$i * 7919 % 1009}] }
	return done
}
coroutine next generator 3000
set list {}
while {[set v [next]] ne "done"} { lappend list $v }
set sorted [lsort -integer -unique $list]
puts "[llength $sorted] [lindex $sorted end] [lsearch -sorted -integer $sorted 500]"
puts [regexp -all -inline {(\d)(\d)\2} [join [lrange $list 0 200]]]
puts [regsub -all {(\d+) (\d+)} [lrange $list 0 9] {\2-\1}]
puts [expr {2**200 % 1000007}]\ [format %.10f [expr {atan(1) * 4}]]\ [clock format 86400 -gmt 1]
for {set i 0; set sum 0} {$i < 200000} {incr i} { set sum [expr {($sum * 31 + $i) % 1000003}] }
puts $sum
oo::class create counter {
	variable n
	constructor {start} { set n $start }
	method add {{by 1}} { incr n $by; return [self] }
	method get {} { return $n }
}
puts [[[[counter new 5] add] add 10] get]
interp create child
puts [child eval {set x [list a {b c}]; string toupper [lindex $x 1]}]
interp delete child
set file [open out w]
fconfigure $file -encoding unicode -translation crlf
puts $file "text\u00e4"
close $file
puts [file size out]
lassign [chan pipe] reader writer
fileevent $reader readable { gets $reader line; puts "event $line"; set done 1 }
after 1 { puts $writer hello; flush $writer }
vwait done
puts [exec sh -c {echo from a shell}]
puts "[catch {exec sh -c {exit 4}} message] $message [lindex $errorCode 2]"
puts [binary encode hex [zlib compress [string repeat abc 100]]]
puts stderr {to stderr}
exit 5
