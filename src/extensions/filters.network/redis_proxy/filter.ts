// Takes commands of Redis apart and sends each to the host that has its key. Worker thread. A client's commands are answered
// in the order in which they came, whichever hosts answer first.

import { timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../../base/clock.ts';
import {
  arrayOf,
  bulk,
  failure,
  integer,
  integerOf,
  isErrorAnswer,
  RespError,
  RespReader,
  request,
  requestArguments,
  simple,
} from '../../../base/resp.ts';
import type {
  NetworkFilter,
  NetworkFilterStatus,
  TerminalCallbacks,
  TerminalFilterContext,
  TerminalFilterKind,
} from '../../../data-plane/index.ts';
import { type Command, commandTable } from './commands.ts';
import { RedisFaults } from './faults.ts';
import { RedisRoutes, type RoutedKey } from './routes.ts';
import type { RedisAuth, RedisFault, RedisSettings } from './settings.ts';
import { RedisStats } from './stats.ts';
import { type AnswerReceiver, NOBODY, type NoAnswer, RedisUpstreams } from './upstream-client.ts';

/** Of one command. */
const MAX_REQUEST_BYTES = 64 * 1024 * 1024;
/** As Redis has it, of clients that have not said who they are. */
const MAX_STRANGER_BYTES = 16 * 1024;
/** Commands of one client that wait for answers, before no more are read. */
const MAX_PENDING = 1024;

const OK = simple('OK');
const PONG = simple('PONG');
const INVALID_REQUEST = failure('invalid request');
const NO_UPSTREAM = failure('no upstream host');
const UPSTREAM_FAILURE = failure('upstream failure');
const NOT_AUTHENTICATED = failure('NOAUTH Authentication required.');
const PROTOCOL_ERROR = failure('downstream protocol error');
const NOT_LET_IN = failure('upstream authentication failed');
const INJECTED = failure('Fault Injected: Error');
const WRONG_PASSWORD = failure('ERR invalid password');
const WRONG_USER = failure('WRONGPASS invalid username-password pair');
const NO_PASSWORD_SET = failure('ERR Client sent AUTH, but no password is set');
const NO_USER_SET = failure('ERR Client sent AUTH, but no username-password pair is set');

/** What all connections of a chain share in one worker. */
class RedisProxy {
  readonly commands: ReadonlyMap<string, Command>;
  readonly upstreams: RedisUpstreams;
  readonly routes: RedisRoutes;
  readonly stats: RedisStats;
  readonly faults: RedisFaults;
  readonly auth: RedisAuth | null;
  readonly clock: Clock;

  constructor(settings: RedisSettings, context: TerminalFilterContext) {
    this.commands = commandTable(settings.customCommands);
    this.stats = new RedisStats(settings, context);
    const onRateLimited = (): void => this.stats.connectionRateLimited();
    this.upstreams = new RedisUpstreams(settings.pool, context, onRateLimited);
    this.routes = new RedisRoutes(settings, context);
    this.faults = new RedisFaults(settings.faults, context);
    this.auth = settings.auth;
    this.clock = context.clock;
    context.onClose(() => this.upstreams.close());
  }
}

type Settle = (answer: Buffer, isError: boolean) => void;

/** One command of a client, until its answer has been written. */
class Pending {
  answer: Buffer | null = null;
  /** The connection ends behind it. */
  readonly isLast: boolean;

  constructor(isLast: boolean) {
    this.isLast = isLast;
  }
}

class RedisConnection implements NetworkFilter {
  readonly #proxy: RedisProxy;
  readonly #callbacks: TerminalCallbacks;
  readonly #reader: RespReader;
  #isAuthenticated: boolean;
  /** In the order in which they came. */
  #pending: Pending[] = [];
  #isOver = false;
  /** No command counts any more. */
  #isEnding = false;
  #hasClientEnded = false;
  #isReading = false;
  #isStopped = false;
  #isBackedUp = false;
  /** Answers that are held back on purpose; each entry calls its one off. */
  #delays: Set<() => void> | null = null;

  constructor(proxy: RedisProxy, callbacks: TerminalCallbacks) {
    this.#proxy = proxy;
    this.#callbacks = callbacks;
    this.#isAuthenticated = proxy.auth === null;
    this.#reader = new RespReader(() => (this.#isAuthenticated ? MAX_REQUEST_BYTES : MAX_STRANGER_BYTES));
    proxy.stats.connectionBegan();
  }

  onData(bytes: Buffer, isEnd: boolean): NetworkFilterStatus {
    if (isEnd) this.#hasClientEnded = true;
    if (this.#isEnding) return 'continue';
    this.#proxy.stats.received(bytes.length);
    // What is answered at once goes out together.
    this.#isReading = true;
    this.#reader.push(bytes);
    this.#readOn();
    this.#isReading = false;
    this.#writeReady();
    if (this.#isOver) return 'continue';
    this.#isStopped = this.#isFull;
    return this.#isStopped ? 'stop' : 'continue';
  }

  onWritable(): void {
    this.#isBackedUp = false;
    this.#writeReady();
    this.#resume();
  }

  onClosed(): void {
    this.#isOver = true;
    this.#isEnding = true;
    this.#proxy.stats.connectionEnded(this.#pending.length);
    this.#pending = [];
    for (const callOff of this.#delays ?? []) callOff();
    this.#delays = null;
  }

  get #isFull(): boolean {
    return this.#pending.length >= MAX_PENDING || this.#isBackedUp;
  }

  #readOn(): void {
    try {
      while (!this.#isEnding) {
        const message = this.#reader.next();
        if (message === null) return;
        this.#handle(requestArguments(message));
      }
    } catch (error) {
      if (!(error instanceof RespError)) throw error;
      this.#proxy.stats.protocolError();
      this.#begin(true).answer = PROTOCOL_ERROR;
      this.#isEnding = true;
    }
  }

  #begin(isLast = false): Pending {
    const pending = new Pending(isLast);
    this.#pending.push(pending);
    return pending;
  }

  #handle(given: readonly Buffer[]): void {
    this.#proxy.stats.requestBegan();
    const name = given[0]!.toString('latin1').toLowerCase();
    const pending = this.#begin(name === 'quit');
    if (name === 'quit') {
      pending.answer = OK;
      this.#isEnding = true;
    } else if (name === 'auth') pending.answer = this.#authenticate(given);
    else if (!this.#isAuthenticated) pending.answer = NOT_AUTHENTICATED;
    else if (name === 'ping') pending.answer = given.length === 1 ? PONG : bulk(given[1]!);
    else if (name === 'echo') pending.answer = given.length === 2 ? bulk(given[1]!) : this.#invalid();
    else if (name === 'time') pending.answer = timeAnswer(this.#proxy.clock.wallMs());
    else this.#dispatch(name, given, pending);
  }

  #authenticate(given: readonly Buffer[]): Buffer {
    const { auth } = this.#proxy;
    if (given.length < 2 || given.length > 3) return this.#invalid();
    if (auth === null) return given.length === 2 ? NO_PASSWORD_SET : NO_USER_SET;
    const username = given.length === 3 ? given[1]!.toString() : '';
    const isUser = auth.username === '' ? username === '' || username === 'default' : username === auth.username;
    const isRight = auth.passwords.map((password) => isSame(given.at(-1)!, password)).includes(true);
    // Whether it was the name or the password nobody is told; and who had come in before is a stranger again.
    this.#isAuthenticated = isUser && isRight;
    if (this.#isAuthenticated) return OK;
    return given.length === 2 ? WRONG_PASSWORD : WRONG_USER;
  }

  #dispatch(name: string, given: readonly Buffer[], pending: Pending): void {
    const { commands, stats } = this.#proxy;
    const command = commands.get(name);
    if (command === undefined) {
      stats.unsupported();
      pending.answer = failure(`ERR unknown command '${printable(given[0]!)}'`);
      return;
    }
    const done = stats.commandBegan(name);
    const fault = this.#proxy.faults.of(name);
    const settleNow = (answer: Buffer, isError: boolean): void => {
      done(isError);
      pending.answer = answer;
      if (!this.#isReading) this.#writeReady();
      this.#resume();
    };
    const settle = fault === null ? settleNow : this.#late(fault, settleNow);
    if (fault !== null) stats.faultInjected(name, fault);
    if (fault?.isError) settle(INJECTED, true);
    else this.#carryOut(command, given, settle);
  }

  #carryOut(command: Command, given: readonly Buffer[], settle: Settle): void {
    if (command.kind === 'get' || command.kind === 'set' || command.kind === 'sum') {
      this.#split(command, given, settle);
      return;
    }
    const keyAt = command.kind === 'script' ? 3 : 1;
    if (given.length <= keyAt) {
      settle(this.#invalid(), true);
      return;
    }
    this.#send(command, given, keyAt, settle);
  }

  /** Tells an answer after the time that the fault says. */
  #late({ delayMs }: RedisFault, settle: Settle): Settle {
    if (delayMs === 0) return settle;
    return (answer, isError) => {
      if (this.#isOver) return;
      const callOff = this.#proxy.clock.after(delayMs, () => {
        this.#delays?.delete(callOff);
        settle(answer, isError);
      });
      this.#delays ??= new Set();
      this.#delays.add(callOff);
    };
  }

  /** The whole command goes to the host of one key. */
  #send(command: Command, given: readonly Buffer[], keyAt: number, settle: Settle): void {
    const routed = this.#proxy.routes.of(given[keyAt]!);
    if (routed === null) {
      settle(NO_UPSTREAM, true);
      return;
    }
    const parts = given.with(keyAt, routed.key);
    const receiver: AnswerReceiver = {
      onAnswer: (message) => settle(Buffer.from(message), isErrorAnswer(message)),
      onNoAnswer: (why) => settle(noAnswer(why), true),
    };
    if (!this.#forward(command, routed, parts, receiver)) settle(NO_UPSTREAM, true);
  }

  /** Each key goes to its own host, and the answers become one. */
  #split(command: Command, given: readonly Buffer[], settle: Settle): void {
    const step = command.kind === 'set' ? 2 : 1;
    const keys = (given.length - 1) / step;
    if (keys < 1 || !Number.isInteger(keys)) {
      settle(this.#invalid(), true);
      return;
    }
    const answers: Buffer[] = [];
    let missing = keys;
    const take = (at: number, answer: Buffer): void => {
      answers[at] = answer;
      missing -= 1;
      if (missing === 0) joinAnswers(command, answers, settle);
    };
    const verb = command.kind === 'get' ? Buffer.from('get') : command.kind === 'set' ? Buffer.from('set') : given[0]!;
    for (let at = 0; at < keys; at += 1) {
      const routed = this.#proxy.routes.of(given[1 + at * step]!);
      if (routed === null) {
        take(at, NO_UPSTREAM);
        continue;
      }
      const parts = [verb, routed.key, ...given.slice(2 + at * step, 1 + (at + 1) * step)];
      const receiver: AnswerReceiver = {
        onAnswer: (message) => take(at, Buffer.from(message)),
        onNoAnswer: (why) => take(at, noAnswer(why)),
      };
      if (!this.#forward(command, routed, parts, receiver)) take(at, NO_UPSTREAM);
    }
  }

  #forward(
    { reads }: Command,
    { route, key, mirrors }: RoutedKey,
    parts: readonly Buffer[],
    receiver: AnswerReceiver,
  ): boolean {
    const { upstreams } = this.#proxy;
    const message = request(parts);
    const isSent = upstreams.send(reads ? route.readCluster : route.cluster, key, message, receiver, reads);
    if (isSent && mirrors.length > 0) {
      for (const mirror of mirrors) {
        if (mirror.takes(reads)) upstreams.send(mirror.cluster, key, request(parts), NOBODY, reads);
      }
    }
    return isSent;
  }

  #invalid(): Buffer {
    this.#proxy.stats.invalid();
    return INVALID_REQUEST;
  }

  #writeReady(): void {
    if (this.#isOver) return;
    const ready: Buffer[] = [];
    let isLast = false;
    let count = 0;
    for (const { answer, isLast: ends } of this.#pending) {
      if (answer === null) break;
      ready.push(answer);
      count += 1;
      isLast = ends;
    }
    if (count > 0) {
      this.#pending.splice(0, count);
      const bytes = Buffer.concat(ready);
      this.#proxy.stats.sent(bytes.length, count);
      if (!this.#callbacks.write(bytes)) this.#isBackedUp = true;
    }
    if (isLast || (this.#hasClientEnded && this.#pending.length === 0)) {
      this.#isEnding = true;
      this.#callbacks.finish();
    }
  }

  #resume(): void {
    if (!this.#isStopped || this.#isOver || this.#isFull) return;
    this.#isStopped = false;
    this.#callbacks.continueReading();
  }
}

function noAnswer(why: NoAnswer): Buffer {
  return why === 'refused' ? NOT_LET_IN : UPSTREAM_FAILURE;
}

function joinAnswers({ kind }: Command, answers: readonly Buffer[], settle: Settle): void {
  if (kind === 'get') {
    settle(arrayOf(answers), answers.some(isErrorAnswer));
    return;
  }
  const errors = answers.filter((answer) => (kind === 'set' ? !answer.equals(OK) : integerOf(answer) === undefined));
  if (errors.length > 0) settle(failure(`finished with ${errors.length} error(s)`), true);
  else if (kind === 'set') settle(OK, false);
  else settle(integer(answers.reduce((sum, answer) => sum + integerOf(answer)!, 0)), false);
}

function timeAnswer(nowMs: number): Buffer {
  return arrayOf([bulk(String(Math.floor(nowMs / 1000))), bulk(String(Math.floor((nowMs % 1000) * 1000)))]);
}

/** What stands in an error: one line. */
function printable(bytes: Buffer): string {
  return bytes
    .subarray(0, 128)
    .toString('latin1')
    .replace(/[^\x20-\x7e]/g, '?');
}

function isSame(given: Buffer, password: string): boolean {
  const expected = Buffer.from(password);
  // Compared with itself, so that lengths take the same time.
  const isLong = given.length === expected.length;
  return timingSafeEqual(isLong ? given : expected, expected) && isLong;
}

export const REDIS_PROXY_FILTER: TerminalFilterKind = {
  isTerminal: true,
  compile(settings, context) {
    const proxy = new RedisProxy(settings as RedisSettings, context);
    return (callbacks) => new RedisConnection(proxy, callbacks);
  },
};
