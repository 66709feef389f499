<?php
// SPDX-License-Identifier: MIT
function deep($n) {
	if (!$n)
		throw new RuntimeException('bottom');
	try {
		return deep($n - 1) + 1;
	} finally {
		$GLOBALS['finally']++;
	}
}
$finally = 0;
foreach ([1, 20, 300] as $n)
	try {
		deep($n);
	} catch (Exception $e) {
		echo $e->getMessage(), " $finally\n";
	}
function numbers($n) {
	for ($i = 0; $i < $n; $i++)
		$sent = yield $i => $i * 7919 % 1009;
	return 'done';
}
$array = iterator_to_array($generator = numbers(20000));
asort($array);
echo count($array), ' ', array_key_last($array), ' ', $generator->getReturn(), "\n";
$json = json_encode(array_chunk($array, 7), JSON_PRETTY_PRINT);
echo strlen($json), ' ', hash('sha256', $json), ' ', crc32(gzcompress_or($json)), "\n";
function gzcompress_or($text) { return function_exists('gzcompress') ? gzuncompress(gzcompress($text, 9)) : $text; }
echo preg_match_all('/(\d)\1/', $json), ' ', preg_replace_callback('/\b(\d)(\d)\b/', fn($m) => $m[2] . $m[1], substr($json, -60)), "\n";
$fiber = new Fiber(function (int $n): string {
	$got = [];
	for ($i = 0; $i < $n; $i++)
		$got[] = Fiber::suspend($i);
	return implode(',', $got);
});
$value = $fiber->start(500);
while (!$fiber->isTerminated())
	$value = $fiber->resume($value * 2);
echo hash('md5', $fiber->getReturn()), "\n";
$failing = new Fiber(function () { Fiber::suspend(); throw new LogicException('from a fiber'); });
$failing->start();
try {
	$failing->resume();
} catch (LogicException $e) {
	echo $e->getMessage(), "\n";
}
class Point implements IteratorAggregate {
	public function __construct(public readonly int $x, public int $y = 2) {}
	public function __get($name) { return "no $name"; }
	public function getIterator(): Iterator { return new ArrayIterator([$this->x, $this->y]); }
}
$point = new Point(1);
echo $point->z, ' ', implode(',', [...$point]), ' ', serialize($point), "\n";
try {
	$point->x = 5;
} catch (Error $e) {
	echo get_class($e), ' ', $e->getMessage(), "\n";
}
printf("%s %.12f %s\n", bin2hex(pack('nvN', 1, 2, 3)), sqrt(2), var_export(0.1 + 0.2, true));
$words = explode(" ", "the quick brown fox jumps");
usort($words, "strcmp");
echo implode(" ", $words), "\n";
for ($i = 0, $sum = 0; $i < 1000000; $i++)
	$sum = ($sum * 31 + $i) % 1000003;
echo $sum, ' ', date('Y-m-d', 86400 * 365), ' ', shell_exec('echo from a shell');
fwrite(STDERR, "to stderr\n");
echo $undefined;
exit(6);
