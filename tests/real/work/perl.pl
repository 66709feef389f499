# SPDX-License-Identifier: MIT
use strict;
use warnings;
my %count;
$count{ $_ * 7919 % 101 }++ for 1 .. 20000;
print join( ",", map { "$_=$count{$_}" } ( sort { $a <=> $b } keys %count )[ 0 .. 9 ] ), "\n";
sub deep { my $n = shift; die { code => $n } if $n == 0; return deep( $n - 1 ) + 1 }
no warnings 'recursion';
for my $depth ( 1, 50, 500 ) { eval { deep($depth); 1 } or print "caught $@->{code}\n" }
my $text = join ' ', map { sprintf "%04x", $_ * 31337 % 65536 } 1 .. 2000;
my $found = () = $text =~ /([0-9a-f])\1/g;
print "$found\n";
( my $changed = $text ) =~ s/(\d)([a-f])/$2$1/g;
print unpack( "%32C*", $changed ), " ", length $changed, "\n";
print join( " ", sort { lc $a cmp lc $b or $a cmp $b } qw(b A c B a C) ), "\n";
local $SIG{USR1} = sub { print "signal\n" };
kill USR1 => $$;
local $SIG{ALRM} = sub { die "alarm\n" };
eval { alarm 1; 1 while 1 };
print $@;
my $pid = fork;
if ( !$pid ) { $| = 1; print "child\n"; exit 6 }
waitpid $pid, 0;
print $? >> 8, "\n";
print `echo from shell; exit 3`, $? >> 8, "\n";
printf "%s %.10f %s\n", 2**40, atan2( 1, 1 ) * 4, join ",", map { $_**2 } grep { $_ % 2 } 1 .. 9;
my @sorted = sort { $a->[1] <=> $b->[1] } map { [ $_, sin $_ ] } 1 .. 500;
print "$sorted[0][0] $sorted[-1][0]\n";
warn "to stderr\n";
exit 9;
