// SPDX-License-Identifier: MIT
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto'), zlib = require('zlib'), fs = require('fs');
if (!isMainThread) {
	let sum = 0;
	for (let i = 0; i < 200000; i++)
		sum = (sum * 31 + i * workerData) % 1000003;
	parentPort.postMessage(sum);
} else {
	const big = (2n ** 500n + 12345n).toString();
	console.log(big.length, crypto.createHash('sha256').update(big).digest('hex'));
	const data = Buffer.from(JSON.stringify([...Array(3000).keys()].map(i => ({ i, s: 'x'.repeat(i % 9) }))));
	const packed = zlib.gzipSync(data, { level: 9 });
	console.log(data.length, zlib.gunzipSync(packed).equals(data));
	function deep(n) { if (!n) throw new Error('bottom'); return deep(n - 1) + 1; }
	for (let i = 0; i < 100; i++)
		try { deep(100); } catch (e) { if (i == 99) console.log(e.message); }
	try { (function f() { f(); })(); } catch (e) { console.log(e.constructor.name); }
	console.log([..."the quick brown fox".matchAll(/o(\w)?/g)].map(m => m.index));
	Promise.all([1, 2, 3, 4].map(n => new Promise((resolve, reject) => {
		const worker = new Worker(__filename, { workerData: n });
		worker.on('message', resolve).on('error', reject);
	}))).then(results => {
		console.log(results);
		fs.writeFileSync('out.json', JSON.stringify(results));
		setTimeout(() => { console.error('done'); process.exit(4); }, 10);
	});
}
