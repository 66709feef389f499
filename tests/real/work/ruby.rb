# SPDX-License-Identifier: MIT
# Exceptions, catch and throw, fibers, enumerators, threads, garbage collection, processes.
require 'digest'
require 'json'
require 'zlib'
def deep(n)
  raise ArgumentError, 'bottom' if n.zero?
  deep(n - 1) + 1
ensure
  $ensured += 1
end
$ensured = 0
[1, 20, 300].each do |n|
  deep(n)
rescue ArgumentError => e
  puts "#{e.message} #{$ensured}"
end
begin
  (f = ->(n) { f.(n + 1) }).(0)
rescue SystemStackError => e
  puts e.class
end
puts(catch(:found) { 10.times { |i| 10.times { |j| throw :found, i * j if i * j == 42 } } })
fiber = Fiber.new { |x| loop { x = Fiber.yield(x * 2) } }
puts((1..500).sum { |i| fiber.resume(i) })
fibers = Array.new(50) { |k| Fiber.new { 20.times { |i| Fiber.yield k * i }; raise "fiber #{k}" if k == 49 } }
puts 20.times.sum { fibers.sum(&:resume) }
begin
  fibers.last.resume
rescue RuntimeError => e
  puts e.message
end
numbers = Enumerator.new { |y| a, b = 0, 1; loop { y << a; a, b = b, a + b } }
puts numbers.lazy.select(&:even?).map { |n| n * n }.first(20).last, numbers.next, numbers.next, numbers.peek
queue = Queue.new
sum = 0
lock = Mutex.new
threads = 4.times.map { Thread.new { while (n = queue.pop); lock.synchronize { sum += n }; end } }
1000.times { |i| queue << i }
4.times { queue << nil }
threads.each(&:join)
puts sum
begin
  Thread.new { Thread.current.report_on_exception = false; raise IOError, 'in a thread' }.join
rescue IOError => e
  puts e.message
end
text = JSON.pretty_generate((1..2000).map { |i| { n: i, s: 'x' * (i % 9), f: i / 7.0 } })
puts text.size, Digest::SHA256.hexdigest(text), Zlib.inflate(Zlib.deflate(text, 9)) == text
puts JSON.parse(text).sum { |h| h['n'] }, text.scan(/(\d)\1/).size, text.gsub(/\d+/) { |d| d.reverse }.hash == 0
200.times { Array.new(500) { |i| "string #{i}" } }
GC.start
GC.compact if GC.respond_to?(:compact)
puts 3**200, 10.pow(50, 997), Rational(1, 3) + 0.5r, [3, 1, 2].sort_by { -_1 }.inspect
puts %w[b A c].sort_by(&:downcase).inspect, 'straße'.upcase, format('%08.3f|%-5s|%x', 3.14159, 'ab', 255)
object = Class.new { def method_missing(name, *args) = "#{name}#{args}"; def respond_to_missing?(*) = true }.new
puts object.anything(1, 2)
Signal.trap('USR1') { puts 'signal' }
Process.kill('USR1', Process.pid)
$stdout.flush
pid = fork { puts 'child'; exit! 6 }
Process.wait(pid)
puts $?.exitstatus, `echo from a shell; exit 3`, $?.exitstatus
case { name: 'x', list: [1, [2, 3]] }
in { name: String => name, list: [Integer, [*, last]] }
  puts name, last
end
at_exit { puts 'at exit' }
warn 'to stderr'
exit 7
