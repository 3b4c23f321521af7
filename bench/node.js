// node.js KIND: serves HTTP on the port that it prints; GET /begin and GET /end measure CPU time.
// node.js load PORT N: makes N requests on 16 connections, and prints the server's CPU time for each of them in us.
//
// SPDX-License-Identifier: ISC
'use strict';
const http = require('http'), net = require('net');

const read = () => new Promise(done => setImmediate(done, { rows: [1] }));
async function query() { return (await read()).rows[0]; }
async function answer(request, response) { response.end('ok' + await query() + await query()); }

const kinds = {
	'plain handler': () => (request, response) => response.end('ok'),
	'async handler': () => answer,
	'express': () => {
		const app = require('express')();
		app.get('/orders/:id', answer);
		return app;
	},
};

function serve(handle) {
	let begin;
	http.createServer((request, response) => {
		if (request.url === '/begin')
			response.end(String((begin = process.cpuUsage()) && 'ok'));
		else if (request.url === '/end') {
			const used = process.cpuUsage(begin);
			response.end(String(used.user + used.system), () => process.exit());
		} else
			handle(request, response);
	}).listen(0, '127.0.0.1', function () { console.log(this.address().port); });
}

function ask(port, path) {
	return new Promise(done => http.get({ port, host: '127.0.0.1', path }, from => {
		let text = '';
		from.on('data', data => text += data).on('end', () => done(text));
	}));
}

// Raw sockets cost the machine less than clients of http.
function load(port, count) {
	return new Promise(done => {
		let sent = 0, got = 0;
		const ask = socket => sent++ < count ? socket.write('GET /orders/8 HTTP/1.1\r\nHost: x\r\n\r\n') : socket.end();
		for (let i = 0; i < 16; i++) {
			const socket = net.connect(port, '127.0.0.1', () => ask(socket));
			let text = '';
			socket.on('data', data => {
				text += data.latin1Slice();
				if (!/\r\n\r\n(ok|2\r\nok|4\r\nok11)/.test(text))
					return;
				text = '';
				if (++got === count)
					done();
				ask(socket);
			});
		}
	});
}

async function main(port, count) {
	await load(port, count);
	await ask(port, '/begin');
	await load(port, count);
	console.log(await ask(port, '/end') / count);
}

if (process.argv[2] === 'load')
	main(+process.argv[3], +process.argv[4]);
else
	serve(kinds[process.argv[2]]());
