// Runs in a network of its own, in which connections to some addresses are redirected to weir: asks them, and prints what
// came of it as JSON. Started by test/integration/redirected.test.ts:
//
//   client ──10.9.9.1:80, [fd00::1]:80──► iptables REDIRECT ──► weir:15001 ──original destination──► upstream there, port 81

import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { httpFilter, listenerWith, ROUTER, socketAddress, tcpFilter } from './bootstrap.ts';
import { runProgram } from './child-process.ts';
import { startWeir } from './weir-process.ts';

const ADDRESSES = ['10.9.9.1', '10.9.9.2', 'fd00::1'];
const TCP_PORT = 15_001;
const HTTP_PORT = 15_002;
const UPSTREAM_PORT = 81;
const LISTENER_FILTER = {
  name: 'envoy.filters.listener.original_dst',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.listener.original_dst.v3.OriginalDst' },
};

async function run(command: string): Promise<void> {
  const [file, ...args] = command.split(' ');
  const { code, stderr } = await runProgram(file!, args);
  if (code !== 0) throw new Error(`${command}: ${stderr}`);
}

async function setUpNetwork(): Promise<void> {
  await run('ip link set lo up');
  for (const ip of ADDRESSES) {
    const isIpv6 = ip.includes(':');
    await run(isIpv6 ? `ip -6 addr add ${ip}/128 dev lo nodad` : `ip addr add ${ip}/32 dev lo`);
    const rule = `-t nat -A OUTPUT -p tcp -d ${ip}`;
    for (const [port, to] of [
      [80, TCP_PORT],
      [8080, HTTP_PORT],
    ]) {
      await run(`${isIpv6 ? 'ip6tables' : 'iptables'} ${rule} --dport ${port} -j REDIRECT --to-ports ${to}`);
    }
  }
}

async function ask(ip: string, port: number, request: string): Promise<string> {
  const socket = connect(port, ip);
  if (request !== '') socket.write(request);
  let text = '';
  socket.setEncoding('latin1');
  socket.on('data', (chunk: string) => {
    text += chunk;
  });
  await once(socket, 'close');
  return text;
}

await setUpNetwork();
for (const ip of ADDRESSES) {
  // Greets, and sends what it hears back in an answer that HTTP can read, too.
  const server = createServer((socket) => {
    if (socket.localPort !== UPSTREAM_PORT) return;
    const answer = `HTTP/1.1 200 OK\r\ncontent-length: ${ip.length}\r\nconnection: close\r\n\r\n${ip}`;
    socket.end(answer);
  });
  server.listen(UPSTREAM_PORT, ip);
  await once(server, 'listening');
  server.unref();
}
const listener = (name: string, port: number, filter: object): object =>
  listenerWith([filter as never], {
    name,
    address: { socket_address: { address: '::', port_value: port, ipv4_compat: true } },
    listener_filters: [LISTENER_FILTER],
  });
const routes = [{ match: { prefix: '/' }, route: { cluster: 'any' } }];
const http = httpFilter({
  route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
  http_filters: [ROUTER],
});
await using weir = await startWeir({
  configYaml: JSON.stringify({
    admin: { address: socketAddress('127.0.0.1', 0) },
    static_resources: {
      listeners: [listener('tcp', TCP_PORT, tcpFilter({ cluster: 'any' })), listener('http', HTTP_PORT, http)],
      clusters: [
        {
          name: 'any',
          type: 'ORIGINAL_DST',
          lb_policy: 'CLUSTER_PROVIDED',
          original_dst_lb_config: { upstream_port_override: UPSTREAM_PORT },
        },
      ],
    },
  }),
  args: ['--concurrency', '2'],
});
const answers: string[] = [];
for (const ip of ADDRESSES) {
  // A client that says nothing must not be waited for.
  answers.push((await ask(ip, 80, '')).split('\r\n\r\n')[1] ?? '');
  answers.push(
    (await ask(ip, 8080, 'GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')).split('\r\n\r\n')[1] ?? '',
  );
}
const straight = await ask('127.0.0.1', TCP_PORT, '');
const hosts = (await weir.admin('/clusters'))
  .split('\n')
  .flatMap((line) => /^any::(.+)::hostname/.exec(line)?.[1] ?? []);
process.stdout.write(JSON.stringify({ answers, straight, hosts: hosts.toSorted() }));
