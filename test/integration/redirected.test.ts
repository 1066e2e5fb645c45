// Connections that the system has redirected to weir, as a sidecar sees them: iptables in a network namespace of its own.

import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { runProgram } from '../support/child-process.ts';

const SUPPORT = path.join(import.meta.dirname, '../support');
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

/** What a program of test/support prints in a network of its own; undefined where the test is skipped. */
async function resultOf<Result>(t: TestContext, program: string): Promise<Result | undefined> {
  const network = await ownNetwork();
  if ('reason' in network) {
    t.skip(network.reason);
    return undefined;
  }
  const [file, ...args] = network.command;
  // What Node's test runner passes down would have the program report as a test.
  const plain = ['env', '-u', 'NODE_TEST_CONTEXT'];
  const script = path.join(SUPPORT, program);
  const { code, stdout, stderr } = await runProgram(file!, [
    ...args,
    ...plain,
    process.execPath,
    ...NODE_FLAGS,
    script,
  ]);
  assert.equal(code, 0, stderr);
  const result = JSON.parse(stdout);
  if (result.skipped === undefined) return result;
  t.skip(result.skipped);
  return undefined;
}

describe('a redirected connection', () => {
  it('goes where it was meant to go, raw and as HTTP, over IPv4 and IPv6', async (t) => {
    const result = await resultOf<Record<string, unknown>>(t, 'redirected-clients.ts');
    if (result === undefined) return;
    const { answers, straight, hosts } = result;
    assert.deepEqual(answers, ['10.9.9.1', '10.9.9.1', '10.9.9.2', '10.9.9.2', 'fd00::1', 'fd00::1']);
    // A connection to weir itself has no other destination, and is not sent round in circles.
    assert.equal(straight, '');
    assert.deepEqual(hosts, ['10.9.9.1:81', '10.9.9.2:81', '[fd00::1]:81']);
  });

  it('goes where it was meant to go by TPROXY, too, and comes from an address that is bound freely', async (t) => {
    const result = await resultOf<Record<string, unknown>>(t, 'transparent-clients.ts');
    if (result === undefined) return;
    const { answers, hosts, handedOver } = result;
    // Of each upstream, and where it was connected to from: the last one by the listener of its address.
    assert.deepEqual(answers, ['10.9.9.1 from 10.7.7.7', 'fd00::1 from fd07::7', '10.9.9.2 from 10.9.9.2']);
    assert.deepEqual(hosts, ['10.9.9.1:81', '[fd00::1]:81']);
    assert.equal(handedOver, 1);
  });
});
