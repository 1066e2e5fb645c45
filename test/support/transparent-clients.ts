// Runs in a network of its own, in which TPROXY gives connections to some addresses to a transparent listener of weir; it
// connects to the upstreams from addresses that the machine does not have, which come back by a route. What is meant for
// one address is handed over to the listener that owns it, and binds to no port. Prints what came of it as JSON. Started by
// test/integration/redirected.test.ts:
//
//   client ──10.9.9.1:80──► TPROXY ──► weir:15003 ──────────────────────from 10.7.7.7──► upstream at 10.9.9.1:81
//          ──10.9.9.2:80──►                  └──► listener of 10.9.9.2:80 ──────────────► upstream at 10.9.9.2:81

import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { listenerWith, socketAddress, tcpFilter } from './bootstrap.ts';
import { runProgram } from './child-process.ts';
import { startWeir } from './weir-process.ts';

/** Of the address that has a listener of its own. */
const OWNED = '10.9.9.2';
const ADDRESSES = ['10.9.9.1', 'fd00::1', OWNED];
const PORT = 15_003;
const UPSTREAM_PORT = 81;
const IP_TRANSPARENT = { level: 0, name: 19, int_value: 1, ip_version: 'SOCKET_IP_VERSION_IPV4' };
const SET_UP = [
  'ip link set lo up',
  'ip addr add 10.9.9.1/32 dev lo',
  `ip addr add ${OWNED}/32 dev lo`,
  'ip -6 addr add fd00::1/128 dev lo nodad',
  // Whole networks that are here, though none of their addresses is bound to: only who may bind freely comes from there.
  'ip route add local 10.7.7.0/24 dev lo table 100',
  'ip rule add to 10.7.7.0/24 lookup 100',
  'ip -6 route add local fd07::/64 dev lo table 100',
  'ip -6 rule add to fd07::/64 lookup 100',
];

async function run(command: string): Promise<string> {
  const [file, ...args] = command.split(' ');
  const { code, stderr } = await runProgram(file!, args);
  return code === 0 ? '' : `${command}: ${stderr}`;
}

async function ask(ip: string): Promise<string> {
  const socket = connect(80, ip);
  let text = '';
  socket.on('error', (error) => {
    text = error.message;
  });
  socket.setEncoding('latin1');
  socket.on('data', (chunk: string) => {
    text += chunk;
  });
  await once(socket, 'close');
  return text;
}

async function testTransparently(): Promise<object> {
  for (const command of SET_UP) {
    const fault = await run(command);
    if (fault !== '') throw new Error(fault);
  }
  for (const ip of ADDRESSES) {
    const rule = `-t mangle -A PREROUTING -p tcp -d ${ip} --dport 80 -j TPROXY --on-port ${PORT}`;
    const fault = await run(`${ip.includes(':') ? 'ip6tables' : 'iptables'} ${rule}`);
    if (fault !== '') return { skipped: `no TPROXY here: ${fault}` };
    const server = createServer((socket) => socket.end(`${ip} from ${socket.remoteAddress}`)).listen(UPSTREAM_PORT, ip);
    await once(server, 'listening');
    server.unref();
  }
  await using weir = await startWeir({
    configYaml: JSON.stringify({
      admin: { address: socketAddress('127.0.0.1', 0) },
      static_resources: {
        listeners: [
          listenerWith([tcpFilter({ cluster: 'any' })], {
            name: 'tcp',
            address: { socket_address: { address: '::', port_value: PORT, ipv4_compat: true } },
            transparent: true,
            use_original_dst: true,
          }),
          listenerWith([tcpFilter({ cluster: 'owned' })], {
            name: 'owner',
            address: socketAddress(OWNED, 80),
            bind_to_port: false,
          }),
        ],
        clusters: [
          { name: 'owned', hosts: [socketAddress(OWNED, UPSTREAM_PORT)] },
          {
            name: 'any',
            type: 'ORIGINAL_DST',
            lb_policy: 'CLUSTER_PROVIDED',
            original_dst_lb_config: { upstream_port_override: UPSTREAM_PORT },
            upstream_bind_config: {
              source_address: { address: '10.7.7.7', port_value: 0 },
              extra_source_addresses: [{ address: { address: 'fd07::7', port_value: 0 } }],
              freebind: true,
              // For IPv4 Linux wants more than that of one who connects.
              socket_options: [IP_TRANSPARENT],
            },
          },
        ],
      },
    }),
    args: ['--concurrency', '2'],
  });
  const answers: string[] = [];
  for (const ip of ADDRESSES) answers.push(await ask(ip));
  const hosts = (await weir.admin('/clusters'))
    .split('\n')
    .flatMap((line) => /^any::(.+)::hostname/.exec(line)?.[1] ?? []);
  const handedOver = await weir.stat(`listener.${OWNED}_80.downstream_cx_total`);
  return { answers, hosts: hosts.toSorted(), handedOver };
}

process.stdout.write(JSON.stringify(await testTransparently()));
