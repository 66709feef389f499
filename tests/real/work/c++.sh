# SPDX-License-Identifier: MIT
# Compile C++ with templates and exceptions, and run it: $1 is the compiler.
set -eu
cat >program.cc <<'END'
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
template <int N> struct fib { static constexpr long value = fib<N - 1>::value + fib<N - 2>::value; };
template <> struct fib<1> { static constexpr long value = 1; };
template <> struct fib<0> { static constexpr long value = 0; };
struct guard {
	int &count;
	~guard() { count++; }
};
static int deep(int n, int &count)
{
	guard g{count};
	if (!n)
		throw std::runtime_error("bottom");
	return deep(n - 1, count) + 1;
}
int main()
{
	int count = 0;
	for (int n : {1, 20, 300})
		try {
			deep(n, count);
		} catch (const std::exception &e) {
			std::cout << e.what() << ' ' << count << '\n';
		}
	std::map<std::string, std::vector<int>> map;
	for (int i = 0; i < 2000; i++)
		map[std::to_string(i * 7919 % 101)].push_back(i);
	std::cout << map.size() << ' ' << map["17"].size() << ' ' << fib<80>::value << '\n';
	std::regex word("([a-z]+)([0-9]*)");
	std::cout << std::regex_replace(std::string("ab12 cd e3"), word, "<$2$1>") << '\n';
	long sums[3] = {};
	std::vector<std::thread> threads;
	for (int t = 0; t < 3; t++)
		threads.emplace_back([t, &sums] { for (int i = 0; i < 10000; i++) sums[t] += i % (t + 2); });
	for (auto &thread : threads)
		thread.join();
	std::cout << sums[0] << ' ' << sums[1] << ' ' << sums[2] << std::endl;
	std::function<int()> f = [] { return std::stoi("x"); };
	return f();
}
END
"$1" -std=c++17 -O1 -pthread program.cc -o program
sha256sum <program
./program 2>&1 || echo "status $?"
