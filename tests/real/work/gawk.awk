# SPDX-License-Identifier: MIT
# Arrays, patterns, functions, pipes, sorting, big loops.
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
function compare(i1, v1, i2, v2) { return v1 - v2 }
BEGIN {
	print fib(20)
	for (i = 1; i <= 20000; i++)
		count[i * 7919 % 1009]++
	PROCINFO["sorted_in"] = "@ind_num_desc"
	for (k in count)
		if (++shown <= 3)
			print k, count[k]
	for (i = 1; i <= 200; i++)
		value[i] = sin(i)
	n = asorti(value, order, "compare")
	print n, order[1], order[n]
	text = sprintf("%c%5.2f|%-6s|%x", 65, 3.14159, "ab", 255)
	print text, toupper(text), length(text), index(text, "|")
	print gensub(/([a-z])([0-9]+)/, "<\\2\\1>", "g", "a1b22c333"), match("foobar", /o+(b)/, m), m[1], RSTART
	print strftime("%Y-%m-%d", 86400, 1), strtonum("0x1f"), and(12, 10), xor(12, 10), compl(0)
	while (("seq 1 5" | getline line) > 0)
		sum += line
	print sum, close("seq 1 5")
	command = "sort -r"
	for (i = 1; i <= 3; i++)
		print i |& command
	close(command, "to")
	while ((command |& getline line) > 0)
		print "sorted", line
	print close(command), system("exit 3")
	name = "fib"
	print @name(10)
	a[1][2]["x"] = 3
	print isarray(a[1]), length(a)
}
{ words[$1 % 10] += $2; total += NF }
/99$/ { last = $0 }
END {
	for (k in words)
		print k, words[k]
	print total, last, NR
	print "to stderr" >"/dev/stderr"
	exit 4
}
