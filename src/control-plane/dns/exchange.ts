// One question to one server, over UDP from a port of its own or over TCP. Main thread.
//
//   OPEN ──answer, refusal, broken connection──► told once, CLOSED
//        └──close──► CLOSED, nothing told
//
// An exchange does not watch the time; its owner does.

import { createSocket } from 'node:dgram';
import { connect, isIPv6 } from 'node:net';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { type DnsQuestion, type DnsReading, readAnswer, writeQuestion } from './message.ts';

export interface DnsServerAddress {
  readonly ip: string;
  readonly port: number;
}

export type DnsTransport = 'udp' | 'tcp';

export type ExchangeOutcome = Exclude<DnsReading, { readonly kind: 'foreign' }>;

export interface Exchange {
  /** Idempotent. */
  close(): void;
}

const WHERE = 'an exchange with a DNS server';
const LENGTH_BYTES = 2;
/** Each question has a port of its own, so nobody but a guesser answers others on it; so many guesses are enough. */
const MAX_FOREIGN = 64;

/**
 * @param faults where those of handlers end. @param onOutcome called once at most, never before this has returned.
 */
export function startExchange(
  transport: DnsTransport,
  server: DnsServerAddress,
  question: DnsQuestion,
  faults: FaultBoundary,
  onOutcome: (outcome: ExchangeOutcome) => void,
): Exchange {
  return transport === 'udp'
    ? askOverUdp(server, question, faults, onOutcome)
    : askOverTcp(server, question, faults, onOutcome);
}

function askOverUdp(
  { ip, port }: DnsServerAddress,
  question: DnsQuestion,
  faults: FaultBoundary,
  onOutcome: (outcome: ExchangeOutcome) => void,
): Exchange {
  const socket = createSocket(isIPv6(ip) ? 'udp6' : 'udp4');
  let isOpen = true;
  let foreign = 0;
  const close = (): void => {
    if (!isOpen) return;
    isOpen = false;
    socket.close();
  };
  const finish = (outcome: ExchangeOutcome): void => {
    if (!isOpen) return;
    close();
    onOutcome(outcome);
  };
  socket.on(
    'error',
    faults.handler(WHERE, (error: Error) => finish(unreachable(error))),
  );
  const onMessage = (message: Buffer): void => {
    const reading = readAnswer(message, question);
    // Somebody guesses: the true answer may still come.
    if (reading.kind !== 'foreign') finish(reading);
    else if (++foreign === MAX_FOREIGN)
      finish({ kind: 'refusal', reason: `${MAX_FOREIGN} answers to other questions` });
  };
  const onConnect = (): void => {
    if (isOpen) socket.send(writeQuestion(question));
  };
  socket.on('message', faults.handler(WHERE, onMessage));
  socket.on('connect', faults.handler(WHERE, onConnect));
  // Once connected, the system drops what comes from elsewhere, and reports a port that nobody listens on. Without
  // callbacks all failures are events.
  socket.connect(port, ip);
  return { close };
}

function askOverTcp(
  { ip, port }: DnsServerAddress,
  question: DnsQuestion,
  faults: FaultBoundary,
  onOutcome: (outcome: ExchangeOutcome) => void,
): Exchange {
  const socket = connect({ host: ip, port });
  let isOpen = true;
  let received: Buffer = Buffer.alloc(0);
  const close = (): void => {
    isOpen = false;
    socket.destroy();
  };
  const finish = (outcome: ExchangeOutcome): void => {
    if (!isOpen) return;
    close();
    onOutcome(outcome);
  };
  socket.on(
    'error',
    faults.handler(WHERE, (error: Error) => finish(unreachable(error))),
  );
  const onClose = (): void => finish({ kind: 'refusal', reason: 'a connection closed before the answer' });
  const onConnect = (): void => {
    const message = writeQuestion(question);
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt16BE(message.length);
    socket.write(Buffer.concat([length, message]));
  };
  const onData = (chunk: Buffer): void => {
    // At most 64 KiB and a chunk: what comes after the first message is never read.
    received = Buffer.concat([received, chunk]);
    if (received.length < LENGTH_BYTES) return;
    const end = LENGTH_BYTES + received.readUInt16BE(0);
    if (received.length < end) return;
    const reading = readAnswer(received.subarray(LENGTH_BYTES, end), question);
    if (reading.kind === 'foreign') finish({ kind: 'refusal', reason: 'an answer to another question' });
    else if (reading.kind === 'truncated') finish({ kind: 'refusal', reason: 'an answer cut off even over TCP' });
    else finish(reading);
  };
  socket.on('close', faults.handler(WHERE, onClose));
  socket.on('connect', faults.handler(WHERE, onConnect));
  socket.on('data', faults.handler(WHERE, onData));
  return { close };
}

function unreachable(error: Error): ExchangeOutcome {
  return { kind: 'refusal', reason: (error as NodeJS.ErrnoException).code ?? error.message };
}
