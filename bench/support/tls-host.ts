// A host that speaks TLS alone, for benchmarks of health checks. Usage: node tls-host.ts <port> <host> <certificate> <key>

import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';

const [port, host, certificate, key] = process.argv.slice(2);
const identity = { cert: readFileSync(certificate!), key: readFileSync(key!) };

createServer({ ...identity, keepAliveTimeout: 0 }, (_request, response) => void response.end('well')).listen(
  Number(port),
  host,
);
