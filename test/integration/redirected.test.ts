// Connections that the system has redirected to weir, as a sidecar sees them: iptables in a network namespace of its own.

import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, it } from 'node:test';
import { runProgram } from '../support/child-process.ts';

const CLIENTS = path.join(import.meta.dirname, '../support/redirected-clients.ts');
const NODE_FLAGS = ['--disable-warning=ExperimentalWarning'];

/** The command that gives another its own network; undefined with the reason where it cannot be had. */
async function ownNetwork(): Promise<{ readonly command: readonly string[] } | { readonly reason: string }> {
  const options = process.geteuid?.() === 0 ? ['-n'] : ['-rn'];
  const probe = 'ip link set lo up && iptables -t nat -L OUTPUT && ip6tables -t nat -L OUTPUT';
  try {
    const { code, stderr } = await runProgram('unshare', [...options, 'sh', '-c', probe]);
    if (code === 0) return { command: ['unshare', ...options] };
    return { reason: `no network namespace with iptables here: ${stderr.trim().split('\n')[0]}` };
  } catch (error) {
    return { reason: `no unshare here: ${String(error)}` };
  }
}

describe('a redirected connection', () => {
  it('goes where it was meant to go, raw and as HTTP, over IPv4 and IPv6', async (t) => {
    const network = await ownNetwork();
    if ('reason' in network) {
      t.skip(network.reason);
      return;
    }
    const [file, ...args] = network.command;
    // What Node's test runner passes down would have the program report as a test.
    const plain = ['env', '-u', 'NODE_TEST_CONTEXT'];
    const result = await runProgram(file!, [...args, ...plain, process.execPath, ...NODE_FLAGS, CLIENTS]);
    assert.equal(result.code, 0, result.stderr);
    const { answers, straight, hosts } = JSON.parse(result.stdout);
    assert.deepEqual(answers, ['10.9.9.1', '10.9.9.1', '10.9.9.2', '10.9.9.2', 'fd00::1', 'fd00::1']);
    // A connection to weir itself has no other destination, and is not sent round in circles.
    assert.equal(straight, '');
    assert.deepEqual(hosts, ['10.9.9.1:81', '10.9.9.2:81', '[fd00::1]:81']);
  });
});
