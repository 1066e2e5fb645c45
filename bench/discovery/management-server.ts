// The management server of the benchmark, in a process of its own: one aggregated stream, state of the world. Does what its parent
// orders, and tells when a response went out and when it was acknowledged, by the clock that all processes share.

import { createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { systemMonotonicMs } from '../../src/base/clock.ts';
import { encodeMessage, protoSchema } from '../../src/config/index.ts';
import { decodeMessage } from '../../src/config/proto/wire.ts';
import { frameOf, MessageFrames } from '../../src/control-plane/grpc/message-frames.ts';
import { type Any, ASSIGNMENT_TYPE, assignment, CLUSTER_TYPE, cluster } from './resources.ts';

/** `changed` have another edition from then on; `told` are in the response, undefined for all. */
export interface TellOrder {
  readonly of: 'clusters' | 'assignments';
  readonly changed: readonly number[] | 'all';
  readonly told?: readonly number[];
  /** Where the hosts of the first cluster listen from now on. */
  readonly livePort?: number;
  /** Resources that stand in the place of those that there are: as many assignments that nobody has asked for. */
  readonly strangers?: number;
}

/** Changes of single assignments, one after the other, at this rate. */
export interface StreamOrder {
  readonly perSecond: number;
  readonly seconds: number;
  readonly clusters: number;
  readonly of: 'clusters' | 'assignments';
}

/** Of one response; milliseconds. */
export interface Told {
  readonly sentMs: number;
  readonly acknowledgedMs: number;
  readonly bytes: number;
  /** Why it was refused; empty where it was not. */
  readonly refusal: string;
}

/** Of a stream of them. */
export interface Streamed {
  readonly responses: number;
  readonly acknowledgements: number;
  readonly lastSentMs: number;
  /** That of the last response. */
  readonly lastAcknowledgedMs: number;
  /** Between a response and the first acknowledgement of it or a later one; the longest. */
  readonly longestWaitMs: number;
}

interface Request {
  readonly type_url: string;
  readonly version_info: string;
  readonly response_nonce: string;
  readonly resource_names: readonly string[];
  readonly error_detail: { readonly message: string } | null;
}

const RESPONSE = 'proxy.service.discovery.v3.DiscoveryResponse';
const REQUEST = 'proxy.service.discovery.v3.DiscoveryRequest';
const MOST_BYTES = 256 * 1024 * 1024;
const TYPES = { clusters: CLUSTER_TYPE, assignments: ASSIGNMENT_TYPE } as const;

const { values } = parseArgs({
  options: { clusters: { type: 'string' }, hosts: { type: 'string' }, 'live-port': { type: 'string' } },
});
const [clusters, hosts] = [Number(values.clusters), Number(values.hosts)];
let livePort = Number(values['live-port']);

const editions = { clusters: new Uint32Array(clusters), assignments: new Uint32Array(clusters) };
const all = [...editions.clusters.keys()];
const held = {
  clusters: all.map((index) => cluster(index, 0)),
  assignments: all.map((index) => made('assignments', index)),
};

function made(of: 'clusters' | 'assignments', index: number): Any {
  const edition = editions[of][index]!;
  return of === 'clusters' ? cluster(index, edition) : assignment(index, hosts, edition, index === 0 ? livePort : 0);
}

function change(of: 'clusters' | 'assignments', indexes: readonly number[]): void {
  for (const index of indexes) {
    editions[of][index]! += 1;
    held[of][index] = made(of, index);
  }
}

let stream: ServerHttp2Stream | undefined;
let nonce = 0;
/** Of responses that are not acknowledged. */
const sent = new Map<number, { readonly sentMs: number; readonly bytes: number }>();
let onAcknowledged = (_nonce: number, _refusal: string): void => {};
const first = { clusters: true, assignments: true };

function encode(of: 'clusters' | 'assignments', resources: readonly Any[]): Buffer {
  nonce += 1;
  const message = { version_info: `v${nonce}`, nonce: String(nonce), type_url: TYPES[of], resources };
  return frameOf(encodeMessage(protoSchema().messageType(RESPONSE), message));
}

function write(frame: Buffer): number {
  sent.set(nonce, { sentMs: systemMonotonicMs(), bytes: frame.length });
  stream!.write(frame);
  return nonce;
}

function heard(bytes: Buffer): void {
  const request = decodeMessage(protoSchema().messageType(REQUEST), bytes) as unknown as Request;
  const answered = Number(request.response_nonce);
  if (answered > 0 && sent.has(answered)) onAcknowledged(answered, request.error_detail?.message ?? '');
  const of = request.type_url === CLUSTER_TYPE ? 'clusters' : 'assignments';
  // All that there is, with the first request; and to who asks for names, as they come.
  if (of === 'clusters' ? first.clusters : request.resource_names.length > asked.size) tellFirst(of, request);
}

const asked = new Set<string>();

function tellFirst(of: 'clusters' | 'assignments', { resource_names: names }: Request): void {
  first[of] = false;
  const fresh = names.filter((name) => !asked.has(name));
  for (const name of fresh) asked.add(name);
  const told = of === 'clusters' ? held.clusters : fresh.map((name) => held.assignments[Number(name.slice(8))]!);
  write(encode(of, told));
}

async function tell({ of, changed, told, livePort: port, strangers }: TellOrder): Promise<Told> {
  livePort = port ?? livePort;
  change(of, changed === 'all' ? all : changed);
  const resources =
    strangers === undefined
      ? (told ?? all).map((index) => held[of][index]!)
      : Array.from({ length: strangers }, (_, index) => assignment(clusters + index, 1, 0, 0));
  const frame = encode(of, resources);
  const { promise, resolve } = Promise.withResolvers<Told>();
  const own = nonce;
  onAcknowledged = (answered, refusal) => {
    if (answered !== own) return;
    resolve({ ...sent.get(own)!, acknowledgedMs: systemMonotonicMs(), refusal });
  };
  write(frame);
  return await promise;
}

async function streamChanges({ perSecond, seconds, clusters: count, of }: StreamOrder): Promise<Streamed> {
  const responses = perSecond * seconds;
  const beganMs = systemMonotonicMs();
  let [written, acknowledgements, longestWaitMs, lastSentMs] = [0, 0, 0, 0];
  let last = Number.POSITIVE_INFINITY;
  const { promise, resolve } = Promise.withResolvers<number>();
  sent.clear();
  onAcknowledged = (answered) => {
    const nowMs = systemMonotonicMs();
    acknowledgements += 1;
    for (const [each, { sentMs }] of sent) {
      if (each > answered) break;
      longestWaitMs = Math.max(longestWaitMs, nowMs - sentMs);
      sent.delete(each);
    }
    if (answered === last) resolve(nowMs);
  };
  const timer = setInterval(() => {
    const due = Math.min(responses, Math.floor(((systemMonotonicMs() - beganMs) * perSecond) / 1000));
    for (; written < due; written += 1) {
      const index = 1 + (written % count);
      change(of, [index]);
      write(encode(of, of === 'clusters' ? held.clusters : [held.assignments[index]!]));
    }
    if (written < responses) return;
    clearInterval(timer);
    last = nonce;
    lastSentMs = sent.get(last)?.sentMs ?? systemMonotonicMs();
    // It may have been acknowledged in the same moment.
    if (!sent.has(last)) resolve(lastSentMs);
  }, 1);
  const lastAcknowledgedMs = await promise;
  return { responses, acknowledgements, lastSentMs, lastAcknowledgedMs, longestWaitMs };
}

const server = createServer();
server.on('session', (session) => {
  session.setLocalWindowSize(MOST_BYTES);
  session.on('error', () => {});
});
server.on('stream', (opened: ServerHttp2Stream) => {
  stream = opened;
  const frames = new MessageFrames(MOST_BYTES);
  opened.on('error', () => {});
  opened.on('data', (bytes: Buffer) => {
    for (const message of frames.add(bytes)) heard(message);
  });
  opened.respond({ ':status': 200, 'content-type': 'application/grpc' });
});
server.listen(0, '127.0.0.1', () => process.send!((server.address() as AddressInfo).port));

process.on('message', async (order: TellOrder | StreamOrder) => {
  process.send!('perSecond' in order ? await streamChanges(order) : await tell(order));
});
