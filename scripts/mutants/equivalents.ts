// Survivors of `npm run mutants` that a person has looked at: the changed code does the same as before, as far as
// anybody could notice. Each says why. One that no run meets any more is to be taken out.

import { ROUTER_EQUIVALENTS } from './router-equivalents.ts';
import { UPSTREAM_EQUIVALENTS } from './upstream-equivalents.ts';

export interface EquivalentMutants {
  /** Path relative to the root. */
  readonly file: string;
  /** The line in which the change begins, without its indent. */
  readonly line: string;
  /** Changes as the report prints them behind the place: `before → after`. */
  readonly changes: readonly string[];
  readonly why: string;
}

export const EQUIVALENT_MUTANTS: readonly EquivalentMutants[] = [
  {
    file: 'src/control-plane/cluster-manager/active-cluster.ts',
    line: 'if (told === hosts || namesMembers(settings)) return update;',
    changes: ['told === hosts → false'],
    why: 'Spares the look through all members, which finds nothing.',
  },
  {
    file: 'src/control-plane/cluster-manager/active-cluster.ts',
    line: '#isAmended = false;',
    changes: ['false → true'],
    why: 'The empty list of a new cluster is made once more for who reads it first.',
  },
  {
    file: 'src/control-plane/cluster-manager/active-host.ts',
    line: 'if (statBlock !== undefined) stats.retireUnnamed(HOST_STATS, statBlock);',
    changes: ['statBlock !== undefined → true'],
    why: 'No block is found under undefined, and nothing given back.',
  },
  {
    file: 'src/control-plane/cluster-manager/cluster-manager.ts',
    line: 'if (latest !== active && active?.takeOver(given)) {',
    changes: ['latest !== active → true'],
    why: 'Asked once more, it refuses once more.',
  },
  {
    file: 'src/control-plane/cluster-manager/discovery/logical-dns.ts',
    line: "const logicalName = formatAddress({ kind: 'ip', ip: name, port });",
    changes: ['\'ip\' → ""'],
    why: 'No pipe, and whatever is none has a port.',
  },
  {
    file: 'src/control-plane/cluster-manager/discovery/resolve-target.ts',
    line: "this.#listener.onAnswer(this, { kind: 'success', addresses: [{ ip: name, ttlSeconds: 0 }] });",
    changes: ['\'success\' → ""'],
    why: 'Who is told of an answer asks only whether it is a failure.',
  },
  {
    file: 'src/control-plane/cluster-manager/event-files.ts',
    line: "for (const file of this.#files.values()) file.close('none');",
    changes: ['\'none\' → ""'],
    why: 'No tries belong to another word either.',
  },
  {
    file: 'src/control-plane/cluster-manager/event-files.ts',
    line: "this.#files.get(path)?.close('none');",
    changes: ['\'none\' → ""'],
    why: 'No tries belong to another word either.',
  },
  {
    file: 'src/control-plane/cluster-manager/health-check/event-log.ts',
    line: 'if (paths.length === 0) return;',
    changes: ['paths.length === 0 → false'],
    why: 'Spares the rendering of an event that goes to no file.',
  },
  {
    file: 'src/control-plane/cluster-manager/health-check/http-answer.ts',
    line: '#isPersistent = false;',
    changes: ['false → true'],
    why: 'Set at the end of the head, and not read before.',
  },
  {
    file: 'src/control-plane/cluster-manager/health-check/http-answer.ts',
    line: 'if (this.#framing === Framing.CHUNKED) {',
    changes: ['this.#framing === Framing.CHUNKED → true'],
    why: 'Spares other answers a scanner that nobody asks.',
  },
  {
    file: 'src/control-plane/cluster-manager/health-check/http-answer.ts',
    line: 'if (next < 0) return noHttp(next);',
    changes: ['next < 0 → next <= 0'],
    why: 'A scanner passes one byte at least.',
  },
  {
    file: 'src/control-plane/cluster-manager/health-check/payload-match.ts',
    line: 'if (this.isMatched) return;',
    changes: ['this.isMatched → false'],
    why: 'Spares the copying of bytes in which nothing is looked for.',
  },
  {
    file: 'src/control-plane/cluster-manager/health-check/http-probe.ts',
    line: 'if (target.authority !== this.#authority) {',
    changes: ['target.authority !== this.#authority → true'],
    why: 'Spares the writing of the same request once more.',
  },
  {
    file: 'src/control-plane/cluster-manager/health-check/http-probe.ts',
    line: "if (state.kind === 'complete' && state.isReusable && this.#reusesConnection) this.#connection.keep();",
    changes: ["state.kind === 'complete' → true"],
    why: 'What is broken says nothing of being reusable.',
  },
  {
    file: 'src/control-plane/cluster-manager/health-check/payload-match.ts',
    line: 'const kept = Math.min(rest.length, block.length - 1);',
    changes: ['block.length - 1 → block.length + 1'],
    why: 'A block that begins in the two bytes more that are kept would have ended with them, and been found.',
  },
  {
    file: 'src/control-plane/cluster-manager/health-check/probe-connection.ts',
    line: '#isBusy = false;',
    changes: ['false → true'],
    why: 'Set when a connection is asked for, and not read before.',
  },
  {
    file: 'src/control-plane/cluster-manager/health-check/probe-connection.ts',
    line: '#isUntried = false;',
    changes: ['false → true'],
    why: 'Set when a connection is asked for, and not read before.',
  },
  {
    file: 'src/control-plane/cluster-manager/host-lists/list-maker.ts',
    line: "#madeWith = '';",
    changes: ['\'\' → "Stryker was here!"'],
    why: 'Set with the first lists, which the constructor makes.',
  },
  {
    file: 'src/control-plane/cluster-manager/host-lists/list-maker.ts',
    line: 'return { locality, hosts, isPanic: isBelow(priorityState(hosts, first!, false).counts, healthyPanicThreshold) };',
    changes: ['false → true'],
    why: 'Adds the weights up beside the counts, which alone are asked.',
  },
  {
    file: 'src/control-plane/cluster-manager/host-lists/list-maker.ts',
    line: 'return value !== undefined && value > 0 ? value : byDefault;',
    changes: ['value !== undefined → true'],
    why: 'What is undefined is not above 0.',
  },
  {
    file: 'src/control-plane/cluster-manager/host-lists/source-builder.ts',
    line: 'const isFirst = slot < SLOTS_PER_PRIORITY;',
    changes: ['slot < SLOTS_PER_PRIORITY → slot <= SLOTS_PER_PRIORITY'],
    why: 'The next slot is that of all hosts of the second priority, and panic knows no zones.',
  },
  {
    file: 'src/control-plane/cluster-manager/host-lists/zone-routing.ts',
    line: 'settings.goesByWeight ? healthy.reduce((sum, index) => sum + members[index]!.weight, 0) : healthy.length;',
    changes: ['sum + members[index]!.weight → sum - members[index]!.weight'],
    why: 'Each size is made negative, and so is their sum: the shares are the same.',
  },
  {
    file: 'src/control-plane/cluster-manager/managed-cluster.ts',
    line: 'if (!this.#isFound) this.#discovery.start();',
    changes: ['!this.#isFound → true'],
    why: 'Static members would be told a second time, which changes nothing.',
  },
  {
    file: 'src/control-plane/cluster-manager/managed-cluster.ts',
    line: 'this.#isFound = true;',
    changes: ['true → false'],
    why: 'Static members would be told a second time, which changes nothing.',
  },
  {
    file: 'src/control-plane/cluster-manager/managed-cluster.ts',
    line: "if (log.enabled('debug')) {",
    changes: ["log.enabled('debug') → true"],
    why: 'Spares the text of a line that is not written.',
  },
  {
    file: 'src/control-plane/cluster-manager/outlier-detection/event-log.ts',
    line: 'if (this.#paths.length === 0) return;',
    changes: ['this.#paths.length === 0 → false'],
    why: 'Spares the rendering of an event that goes to no file.',
  },
  {
    file: 'src/control-plane/cluster-manager/outlier-detection/outlier-detector.ts',
    line: "this.#log(state, { kind: 'uneject' }, state.ejectedAtMs, nowMs);",
    changes: ["{ kind: 'uneject' } → {}", '\'uneject\' → ""'],
    why: 'What is no ejection is the end of one.',
  },
  {
    file: 'src/control-plane/dns/dns-client.ts',
    line: "const outcome = await this.#exchange(useTcp ? 'tcp' : 'udp', server, question);",
    changes: ['\'tcp\' → ""'],
    why: 'No transport; whatever is not UDP goes over TCP.',
  },
  {
    file: 'src/control-plane/dns/dns-client.ts',
    line: "const second = await this.#exchange('tcp', server, question);",
    changes: ['\'tcp\' → ""'],
    why: 'No transport; whatever is not UDP goes over TCP.',
  },
  {
    file: 'src/control-plane/dns/dns-client.ts',
    line: "if (outcome.kind !== 'truncated') reason = outcome.reason;",
    changes: ["outcome.kind !== 'truncated' → true"],
    why: 'Only the types know of a truncated answer here: it has been asked for again.',
  },
  {
    file: 'src/control-plane/dns/exchange.ts',
    line: 'if (!isOpen) return;',
    changes: ['!isOpen → false'],
    why: 'Of an exchange over UDP that has finished: a closed socket tells nothing more. The other places are noticed.',
  },
  {
    file: 'src/control-plane/dns/hosts-file.ts',
    line: "const [ip = '', ...names] = line.replace(/#.*/, '').trim().split(/\\s+/);",
    changes: ['\'\' → "Stryker was here!"'],
    why: 'A split gives one piece at least.',
  },
  {
    file: 'src/control-plane/dns/message.ts',
    line: "if (error instanceof RangeError) return { kind: 'refusal', reason: 'a damaged answer' };",
    changes: ['error instanceof RangeError → true'],
    why: 'Reading throws nothing else; what it may come to throw is not to be hidden.',
  },
  {
    file: 'src/control-plane/dns/message.ts',
    line: "const value = isInternet ? this.#value(type, length) : '';",
    changes: ['\'\' → "Stryker was here!"'],
    why: 'Nobody reads the value of a record that is neither an alias nor an address.',
  },
  {
    file: 'src/control-plane/dns/message.ts',
    line: "if (type !== TYPE_NUMBERS.A && type !== TYPE_NUMBERS.AAAA) return '';",
    changes: ['\'\' → "Stryker was here!"'],
    why: 'Nobody reads the value of a record that is neither an alias nor an address.',
  },
  {
    file: 'src/control-plane/dns/resolver-file.ts',
    line: "if (keyword === 'nameserver' && isIP(values[0] ?? '') !== 0) servers.push({ ip: values[0]!, port: DNS_PORT });",
    changes: ['\'\' → "Stryker was here!"'],
    why: 'Neither is an address.',
  },
  {
    file: 'src/control-plane/dns/system-resolver.ts',
    line: "const NOTHING_FOUND: DnsAnswer = { kind: 'success', addresses: [] };",
    changes: ['\'success\' → ""'],
    why: 'What is no failure is a success.',
  },
  {
    file: 'src/control-plane/listener-manager/listener-sockets.ts',
    line: "if (address.kind === 'pipe' && isFree) yield address.path;",
    changes: ["address.kind === 'pipe' → true"],
    why: 'An IP address has no path, and nothing lies where there is none.',
  },
  {
    file: 'src/control-plane/listener-manager/listener-sockets.ts',
    line: "if (address.kind === 'ip' && address.port === 0) continue;",
    changes: ["address.kind === 'ip' → true"],
    why: 'A pipe has no port, not even 0.',
  },
  {
    file: 'src/control-plane/workers/open-listeners.ts',
    line: "if (address.kind === 'pipe') await removeStaleSocket(address.path);",
    changes: ["address.kind === 'pipe' → true"],
    why: 'An IP address has no path, and nothing lies where there is none.',
  },
  {
    file: 'src/control-plane/workers/worker-thread.ts',
    line: "if (this.#state !== 'ended') this.#state = 'stopping';",
    changes: ["this.#state !== 'ended' → true", '\'ended\' → ""'],
    why: 'One that has ended neither runs nor ends again, which is all that the state is asked for.',
  },
  {
    file: 'src/control-plane/workers/worker-thread.ts',
    line: "this.#state = 'ended';",
    changes: ['\'ended\' → ""'],
    why: 'As much as any word that is neither that of a thread that runs nor of one that stops.',
  },
  {
    file: 'src/data-plane/listener/listeners-by-address.ts',
    line: "return formatAddress({ kind: 'ip', ip, port });",
    changes: ['\'ip\' → ""'],
    why: 'No pipe, and whatever is none has a port.',
  },
  {
    file: 'src/data-plane/network/paused-peers.ts',
    line: 'isPaused = false;',
    changes: ['false → true'],
    why: 'The first pause sets it, and nobody asks before.',
  },
  {
    file: 'src/data-plane/network/paused-peers.ts',
    line: 'wasSeen = false;',
    changes: ['false → true'],
    why: 'The first pause sets it, and nobody asks before.',
  },
  {
    file: 'src/data-plane/network/paused-peers.ts',
    line: 'if (this.#states.length < watched.length) this.#states = new Uint8Array(2 * watched.length);',
    changes: [
      'this.#states.length < watched.length → true',
      'this.#states.length < watched.length → this.#states.length <= watched.length',
    ],
    why: 'Spares most looks an allocation: what they read has been written by the same look.',
  },
  {
    file: 'src/data-plane/network/peer-address.ts',
    line: "return isIPv6(address) && PRIVATE_NETWORKS.check(address, 'ipv6');",
    changes: ['\'ipv6\' → ""'],
    why: 'To Node every family is IPv6 that is not IPv4.',
  },
  {
    file: 'src/data-plane/network/read-mode.ts',
    line: "const client = connect((server!.address() as { port: number }).port, '127.0.0.1');",
    changes: ['\'127.0.0.1\' → ""'],
    why: 'Without a name Node looks up that of this machine, which is the same place.',
  },
  {
    file: 'src/data-plane/network/socket-events.ts',
    line: 'return false;',
    changes: ['false → true'],
    why: 'The connection of the fault has been reset: nothing is read from it, whatever is said here.',
  },
  {
    file: 'src/data-plane/network/socket-events.ts',
    line: "if (mode === 'events') owned.on('data', onData);",
    changes: ["mode === 'events' → true"],
    why: 'A socket that reads into buffers of ours has no `data` events.',
  },
  {
    file: 'src/data-plane/network/socket-events.ts',
    line: 'if (!passOn(socket, bytes) && !isLean(socket, mode)) socket.pause();',
    changes: ['!isLean(socket, mode) → true'],
    why: 'In the lean way a pause stops nothing: no bytes come by the Readable, and an empty push reads on in spite of it.',
  },
  {
    file: 'src/data-plane/network/socket-events.ts',
    line: "if (address.kind === 'ip' && (sourceAddress !== undefined || sourcesByFamily !== undefined)) {",
    changes: ['sourceAddress !== undefined || sourcesByFamily !== undefined → true'],
    why: 'Spares connections that may come from anywhere a question whose answer adds nothing.',
  },
  {
    file: 'src/data-plane/network/socket-writer.ts',
    line: 'if (total > LARGEST_SCRATCH) return this.#writeFresh(socket, head, bytes, start, end);',
    changes: ['total > LARGEST_SCRATCH → total >= LARGEST_SCRATCH'],
    why: 'Of just that length, memory of its own is as long as the scratch buffer.',
  },
  {
    file: 'src/data-plane/network/socket-writer.ts',
    line: 'return socket.write(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end));',
    changes: ['start === 0 && end === bytes.length → false'],
    why: 'Spares a view of the whole.',
  },
  {
    file: 'src/data-plane/network/timer-wheel.ts',
    line: 'let tick = Math.max(this.#cursor + 1, target - SLOTS + 1);',
    changes: ['this.#cursor + 1 → this.#cursor - 1', 'target - SLOTS + 1 → target - SLOTS - 1'],
    why: 'Two slots are run once more: what is due in them has fired, what is not goes to its slot again.',
  },
  {
    file: 'src/data-plane/network/timer-wheel.ts',
    line: 'if (this.#count === 0) return;',
    changes: ['this.#count === 0 → false'],
    why: 'Saves the look through all slots of an empty wheel, which finds nothing.',
  },
  {
    file: 'src/data-plane/network/timer-wheel.ts',
    line: 'for (let tick = this.#cursor + 1; tick < this.#cursor + SLOTS; tick++) {',
    changes: ['tick < this.#cursor + SLOTS → tick <= this.#cursor + SLOTS'],
    why: 'The last slot is that of the cursor, which has just been run and is empty.',
  },
  ...ROUTER_EQUIVALENTS,
  ...UPSTREAM_EQUIVALENTS,
];
