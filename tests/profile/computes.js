// A server of Node.js whose handler keeps the loop busy in the way that the command names.  SPDX-License-Identifier: ISC
'use strict';
const fs = require('fs');
const http = require('http');

function isOver(begin) {
    return process.cpuUsage(begin).user + process.cpuUsage(begin).system > 300000;
}

const ways = {
    compute: function checksum() {
        let sum = 0;
        for (const begin = process.cpuUsage(); !isOver(begin);)
            for (let i = 0; i < 1e6; i++)
                sum = (sum * 31 + i) % 65521;
        return sum;
    },
    // The collector runs meanwhile, and takes locks.
    collect: class Report {
        static render() {
            let text = '';
            for (const begin = process.cpuUsage(); !isOver(begin);)
                text = JSON.stringify(Array.from({length: 10000}, (unused, i) => ({i, name: 'n' + i})));
            return text.length;
        }
    }.render,
    // Calls of C++ code, which makes system calls.
    read: () => {
        const readAll = () => {
            let bytes = 0;
            for (const begin = process.cpuUsage(); !isOver(begin);)
                for (let i = 0; i < 100; i++)
                    bytes += fs.readFileSync(__filename).length;
            return bytes;
        };
        return readAll();
    },
};

function onRequest(request, response) {
    response.end(String(ways[process.argv[2]]()));
}

const server = http.createServer(onRequest);
server.listen(0, '127.0.0.1', () => {
    http.get({port: server.address().port, host: '127.0.0.1', agent: false}, (response) => {
        response.resume();
        response.on('end', () => server.close());
    });
});
