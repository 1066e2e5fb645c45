// The servers of a Redis cluster: one of them is asked from time to time who has which keys. What it says holds until another
// answer comes; questions that fail change nothing. Main thread.
//
//   seeds found ──► ASKING ──answer, failure or its time──► WAITING ──refresh rate, or a redirection to a stranger──► ASKING …
//                      └───────────────stop────────────────────┴──► STOPPED

import { formatAddress, type IpAddress } from '../../../base/address.ts';
import { roleMetadata } from '../../../base/redis-slots.ts';
import { isRefusal, lineOf, RespError, RespReader, request, requestToAuth } from '../../../base/resp.ts';
import { BARE_ENDPOINT } from '../../../config/index.ts';
import type { HostSettings, RedisDiscoverySettings, ServerCredentials } from '../../../snapshot/index.ts';
import type { HeldResolver } from '../../dns/resolvers.ts';
import type { ProbeOrigin } from '../health-check/probe.ts';
import { type ConnectionListener, MAX_ANSWER_BYTES, ProbeConnection } from '../health-check/probe-connection.ts';
import type { AwaitingCheck, ProbeTls } from '../health-check/probe-tls.ts';
import { namesIn, type RedisServer, readClusterSlots } from './cluster-slots.ts';
import type { Discovery, DiscoveryListener, DiscoveryStats, DiscoveryTools } from './discovery.ts';
import { StrictDnsDiscovery } from './strict-dns.ts';

const QUESTION = request(['CLUSTER', 'SLOTS']);
/** The time of a question goes on while its handshake waits for its turn. */
const UNTIMED: AwaitingCheck = { hold() {}, goOn() {} };
/** The seeds have stats of their own nowhere: what counts is what servers say. */
const UNCOUNTED: DiscoveryStats = { add() {} };

export interface RedisClusterTools extends DiscoveryTools {
  /** Where questions come from. */
  readonly origin: ProbeOrigin;
  /** Undefined where they go in cleartext. */
  readonly tls: Pick<ProbeTls, 'of'> | undefined;
  /** Undefined where servers ask for none. */
  readonly credentials: ServerCredentials | undefined;
}

export class RedisClusterDiscovery implements Discovery, ConnectionListener {
  readonly #name: string;
  readonly #settings: RedisDiscoverySettings;
  readonly #stats: DiscoveryStats;
  readonly #tools: RedisClusterTools;
  readonly #listener: DiscoveryListener;
  readonly #search: StrictDnsDiscovery;
  readonly #connection: ProbeConnection;
  /** Of names by which servers call each other. */
  readonly #resolver: HeldResolver;
  #seeds: readonly HostSettings[] = [];
  #members: readonly HostSettings[] = [];
  #membersText = '';
  #reader = new RespReader(() => MAX_ANSWER_BYTES);
  /** Who is being asked; null between questions. */
  #asked: IpAddress | null = null;
  /** Who is being asked, or was last. */
  #host: HostSettings | undefined;
  /** Of that question. */
  #number = 0;
  #awaitsWelcome = false;
  #cancelTimer: (() => void) | undefined;
  /** When a stranger was last a reason to ask: the questions in between are no reason to wait. */
  #lastReasonMs = Number.NEGATIVE_INFINITY;
  #isStopped = false;
  #isReady = false;
  #hasFailed = false;

  constructor(
    name: string,
    settings: RedisDiscoverySettings,
    stats: DiscoveryStats,
    tools: RedisClusterTools,
    listener: DiscoveryListener,
  ) {
    this.#name = name;
    this.#settings = settings;
    this.#stats = stats;
    this.#tools = tools;
    this.#listener = listener;
    const { origin, tls } = tools;
    const secured = tls && { ...origin, security: () => tls.of(this.#host!, UNTIMED) };
    this.#connection = new ProbeConnection(secured ?? origin, [], tools.faults, this);
    this.#resolver = tools.resolvers.hold(settings.seeds.resolver);
    this.#search = new StrictDnsDiscovery(name, settings.seeds, UNCOUNTED, tools, {
      onHosts: (seeds) => this.#onSeeds(seeds),
      onReady: () => this.#onSearched(),
    });
  }

  start(): void {
    this.#search.start();
  }

  stop(): void {
    this.#isStopped = true;
    this.#search.stop();
    this.#cancelTimer?.();
    this.#connection.close();
    this.#resolver.release();
  }

  /** An answer has named a server that is no member. */
  strangerNamed(): void {
    const nowMs = this.#tools.clock.monotonicMs();
    const isIdle = this.#isReady && this.#asked === null && !this.#isStopped;
    if (!isIdle || nowMs - this.#lastReasonMs < this.#settings.redirectIntervalMs) return;
    this.#lastReasonMs = nowMs;
    this.#ask();
  }

  onOpen(socket: { write(bytes: Buffer): unknown }): void {
    const { credentials } = this.#tools;
    this.#reader = new RespReader(() => MAX_ANSWER_BYTES);
    this.#awaitsWelcome = credentials !== undefined;
    if (credentials !== undefined) socket.write(requestToAuth(credentials));
    socket.write(QUESTION);
  }

  onBytes(bytes: Buffer): void {
    this.#reader.push(bytes);
    try {
      for (let answer = this.#reader.next(); answer !== null; answer = this.#reader.next()) {
        if (this.#awaitsWelcome) {
          this.#awaitsWelcome = false;
          if (isRefusal(answer)) throw new RespError(`answered ${JSON.stringify(lineOf(answer).slice(0, 100))}`);
          continue;
        }
        this.#takeIn(answer);
        return;
      }
    } catch (error) {
      if (!(error instanceof RespError)) throw error;
      this.#failed(error.message);
    }
  }

  #takeIn(answer: Buffer): void {
    const names = namesIn(answer);
    if (names.length === 0) this.#answered(readClusterSlots(answer, this.#asked!.ip));
    else this.#tools.faults.run('the names of a Redis cluster', () => this.#findNames(names, answer));
  }

  /** Within the time of the question. */
  async #findNames(names: readonly string[], answer: Buffer): Promise<void> {
    const number = this.#number;
    // It has said all: whether it stays does not matter.
    this.#connection.close();
    const found = await Promise.all(names.map((name) => this.#addressOf(name)));
    // Its time may be over, and another question under way.
    if (this.#asked === null || this.#number !== number || this.#isStopped) return;
    try {
      const addresses = new Map(found.flatMap((ip, at) => (ip === undefined ? [] : [[names[at]!, ip]])));
      this.#answered(readClusterSlots(answer, this.#asked.ip, addresses));
    } catch (error) {
      if (!(error instanceof RespError)) throw error;
      this.#failed(error.message);
    }
  }

  /** The first of several: a server has one. */
  async #addressOf(name: string): Promise<string | undefined> {
    try {
      const answer = await this.#resolver.lookup(name, this.#settings.seeds.lookupFamily);
      return answer.kind === 'success' ? answer.addresses[0]?.ip : undefined;
    } catch {
      return undefined;
    }
  }

  onLost(reason: string | undefined): void {
    this.#failed(reason ?? 'closed before the answer');
  }

  #onSeeds(seeds: readonly HostSettings[]): void {
    this.#seeds = seeds;
    if (this.#asked === null && this.#cancelTimer === undefined && seeds.length > 0) this.#ask();
  }

  /** Where no name has an address, nobody is to wait for one. */
  #onSearched(): void {
    if (this.#seeds.length === 0) this.#becomeReady();
  }

  #ask(): void {
    const { clock, faults, random } = this.#tools;
    this.#cancelTimer?.();
    // After a failure the configured ones may know more than those that have told of themselves.
    const known = this.#members.length === 0 || this.#hasFailed ? [...this.#seeds, ...this.#members] : this.#members;
    this.#host = known[random.u32() % known.length]!;
    const { address } = this.#host;
    this.#asked = address as IpAddress;
    this.#number += 1;
    this.#stats.add('update_attempt');
    const tooLate = (): void => this.#failed(`no answer within ${this.#settings.timeoutMs} ms`);
    this.#cancelTimer = clock.after(this.#settings.timeoutMs, faults.handler('the slots of a Redis cluster', tooLate));
    this.#connection.open({ address, authority: '' });
  }

  #answered(servers: readonly RedisServer[]): void {
    if (servers.length === 0) {
      this.#stats.add('update_empty');
      this.#failed('no server has any slots');
      return;
    }
    this.#stats.add('update_success');
    if (this.#hasFailed) this.#tools.log.info(`cluster ${this.#name} says again who has which keys`);
    this.#hasFailed = false;
    const members = servers.map(memberOf);
    const text = JSON.stringify(members);
    if (text === this.#membersText) this.#stats.add('update_no_rebuild');
    else {
      this.#members = members;
      this.#membersText = text;
      this.#listener.onHosts(members);
    }
    this.#wait();
  }

  #failed(reason: string): void {
    if (this.#asked === null) return;
    this.#stats.add('update_failure');
    if (!this.#hasFailed) {
      const who = formatAddress(this.#asked);
      this.#tools.log.warning(`cluster ${this.#name}: ${who} does not say who has which keys: ${reason}`);
    }
    this.#hasFailed = true;
    this.#wait();
  }

  /** The next one is asked over a connection of its own: it is another server, most of the time. */
  #wait(): void {
    const { clock, faults } = this.#tools;
    this.#asked = null;
    this.#connection.close();
    this.#cancelTimer?.();
    this.#becomeReady();
    if (this.#isStopped) return;
    const again = faults.handler('the slots of a Redis cluster', () => this.#ask());
    this.#cancelTimer = clock.after(this.#settings.refreshMs, again);
  }

  #becomeReady(): void {
    if (this.#isReady) return;
    this.#isReady = true;
    this.#listener.onReady();
  }
}

function memberOf({ ip, port, name, role }: RedisServer): HostSettings {
  return { ...BARE_ENDPOINT, hostname: name, address: { kind: 'ip', ip, port }, metadata: roleMetadata(role) };
}
