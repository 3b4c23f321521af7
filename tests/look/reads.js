// Reads a file synchronously, as many programs do at their start.  SPDX-License-Identifier: ISC
'use strict';
const fs = require('fs');

function loadConfig(path) {
    return fs.readFileSync(path, 'utf8');
}

class Service {
    start() {
        console.log('ready');
        return loadConfig(process.argv[2]);
    }
}

setTimeout(() => new Service().start(), 1);
