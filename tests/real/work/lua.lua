-- SPDX-License-Identifier: MIT
-- A bit of everything: closures, metatables, strings, coroutines, errors, garbage, sorting, load.
local function say(...) print(...) end

local function primes(n)
	local sieve, list = {}, {}
	for i = 2, n do
		if not sieve[i] then
			list[#list + 1] = i
			for j = i * i, n, i do sieve[j] = true end
		end
	end
	return list
end
say("primes", #primes(20000))

local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
say("fib", fib(20))

-- strings
local text = {}
for i = 1, 400 do text[#text + 1] = ("%05d:%s;"):format(i * 7919 % 100000, ("x"):rep(i % 7)) end
text = table.concat(text)
say("text", #text, select(2, text:gsub("%d+", "")), text:find("00%d+", 100))
for word, rest in text:sub(1, 60):gmatch("(%d+):(x*)") do io.write(word, "/", #rest, " ") end
say()
say(("%q"):format("quote \"this\"\n\0end"), ("%a %g %10.3f"):format(1.5, 1e300, math.pi))
say(string.pack("<i4z", 7, "abc"):byte(1, -1))
say(utf8.char(228, 8364, 128512), utf8.len("äö€"))

-- coroutines: generators, wrapped in each other, with errors inside
local function tree(depth)
	return coroutine.wrap(function()
		if depth > 0 then
			for value in tree(depth - 1) do coroutine.yield(value * 2) end
			for value in tree(depth - 1) do coroutine.yield(value * 2 + 1) end
		else
			coroutine.yield(1)
		end
	end)
end
local sum = 0
for value in tree(8) do sum = sum + value end
say("tree", sum)
local failing = coroutine.create(function(a)
	local b = coroutine.yield(a + 1)
	error({ code = a + b })
end)
say(coroutine.resume(failing, 1))
local ok, err = coroutine.resume(failing, 5)
say(ok, type(err), err.code, coroutine.status(failing), select("#", coroutine.close(failing)))
for i = 1, 300 do
	local co = coroutine.wrap(function(...) return coroutine.yield(...) end)
	co(i)
end

-- errors through many levels, rethrown, in metamethods, in sort
local function level(n)
	if n == 0 then error("bottom", 0) end
	return level(n - 1) + 1
end
for i = 1, 200 do
	local good, message = pcall(level, i)
	assert(not good and message == "bottom")
	good, message = pcall(function()
		local fine, inner = pcall(level, 5)
		error(inner .. " again", 0)
	end)
	assert(message == "bottom again")
end
say(xpcall(level, function(message) return "handled " .. message end, 50))
say(pcall(table.sort, { 3, 1, 2, 5, 4 }, function(a, b) error("in sort", 0) end))
local strict = setmetatable({}, { __index = function(_, key) error("no field " .. key, 0) end })
say(pcall(function() return strict.missing end))
say(pcall(string.rep, "x", -1), pcall(string.rep), (pcall(string.format, "%d", "x")))
local deep = function(self) return self(self) + 1 end
local fine, overflow = pcall(deep, deep)
say(fine, (tostring(overflow):match("stack overflow")))

-- closing values and finalizers
do
	local closed = setmetatable({}, { __close = function() say("closed") end })
	local guard <close> = closed
end
local finalized = 0
for i = 1, 2000 do
	setmetatable({}, { __gc = function() finalized = finalized + 1 end })
end
collectgarbage()
collectgarbage("generational")
for i = 1, 20000 do local garbage = { i, { tostring(i) } } end
collectgarbage("incremental")
collectgarbage()
say("finalized", finalized)

-- sorting, load, integer and float arithmetic, bit operations
local seed, numbers = 42, {}
for i = 1, 3000 do
	seed = (seed * 1103515245 + 12345) & 0x7fffffff
	numbers[i] = seed
end
table.sort(numbers, function(a, b) return a > b end)
say(numbers[1], numbers[1500], numbers[3000], table.unpack(numbers, 10, 12))
local total = 0
for i = 1, 100 do total = total + load("local x = ... return x * " .. i .. " // 3")(i) end
say(total, load("syntax error here"))
say(7 // -2, 7 % -2, -7 // 2.0, 1 << 62, ~0, 3 | 4 ~ 1, 2 ^ 0.5, math.tointeger(2 ^ 53), 1e15, 0x.8p1)
say(#arg, ...)
local file = assert(io.open("out.txt", "w"))
for i = 1, 1000 do file:write(i, " ", i * i, "\n") end
file:close()
local lines = 0
for line in io.lines("out.txt") do lines = lines + #line end
say("lines", lines, os.remove("out.txt"))
io.stderr:write("to stderr\n")
