// Everybody who wants resources of one type from one management server, and the responses that are on their way to them: one after
// the other, each told to whoever it concerns. Main thread; rests between two resources.

import type { Clock } from '../../../base/clock.ts';
import { errorMessage } from '../../../base/errors.ts';
import type { FaultBoundary } from '../../../base/fault-boundary.ts';
import { TimeSlice } from '../../../base/time-slice.ts';
import { offerRawResource, readRawResource } from '../../../config/exchange.ts';
import type {
  DiscoveredResponse,
  RawResource,
  RawResponse,
  ReadResponse,
  UnknownFieldPolicy,
} from '../../../config/index.ts';
import type { Logger } from '../../../log/index.ts';
import { TypeRecord, type TypeReport } from '../source-report.ts';
import type { SubscriptionRequest } from '../subscription.ts';
import type { WantedNames } from './exchange.ts';
import { Lifetimes } from './lifetimes.ts';
import { NewsOfResponses } from './news-of-responses.ts';

type Watch = Omit<SubscriptionRequest<unknown>, 'source'>;

export interface WatchedTypeDependencies {
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly log: Logger;
  readonly unknownFields: UnknownFieldPolicy;
  /** As logs name the server. */
  readonly server: () => string;
}

/** A resource with its place in the response. */
interface Placed {
  readonly index: number;
  readonly raw: RawResource;
}

/** What of a response concerns one watch. */
interface Share {
  readonly resources: Placed[];
  readonly removed: string[];
  /** Something of it is other than in the response before, as far as is known. */
  isNews: boolean;
}

interface Shares {
  readonly shares: ReadonlyMap<Watch, Share>;
  /** Whose only resource has come again as it was told them last, and who can do with less than being told of it. */
  readonly repeated: ReadonlyMap<Watch, Placed>;
}

/** Responses in a row that are passed over for later ones. */
const MOST_OVERTAKEN = 32;

/** Resources that nobody has asked for, in a line of the log. */
const MOST_NAMED = 10;

/** What a watch is told. */
interface News {
  readonly version: string;
  readonly told: readonly Placed[];
  readonly removed: readonly string[];
  readonly isComplete: boolean;
}

const FILE = 'src/control-plane/subscription/management-server/watched-type.ts';

/** A response that has been gone through. */
export interface TakenResponse {
  readonly read: ReadResponse;
  /** Why some of it is refused, one reason each. */
  readonly refusals: readonly string[];
}

export class WatchedType implements WantedNames {
  readonly #deps: WatchedTypeDependencies;
  /** What a response tells. */
  readonly #form: 'state' | 'changes';
  readonly #isWildcardType: boolean;
  /** A resource of which there is nothing but its name says that there is none. */
  readonly #tellsAbsence: boolean;
  /** With the order in which they have come. */
  readonly #watches = new Map<Watch, number>();
  #lastWatch = 0;
  /** The last that was there when a response came. */
  #lastTold = 0;
  /** Those that want all. */
  readonly #ofAll = new Set<Watch>();
  readonly #byName = new Map<string, Set<Watch>>();
  /** Names that are asked for beside all there are, with how many ask. */
  readonly #asked = new Map<string, number>();
  readonly #lifetimes: Lifetimes;
  readonly #record: TypeRecord;
  #version = '';
  /** What has been refused of the last response: it is not said of the next one again. */
  #complaints: ReadonlySet<string> = new Set();
  readonly #news = new NewsOfResponses();
  /** Many short responses in a row are as long as a long one. */
  readonly #slice = new TimeSlice();
  /** Responses whose turn has not come. */
  readonly #waiting: RawResponse[] = [];
  /** Of those in a row. */
  #overtaken = 0;
  /** What the last of them names, if somebody has looked. */
  #said: { readonly response: RawResponse; readonly names: ReadonlySet<string> | undefined } | undefined;
  /** The last response is taken in behind those before. */
  #taking: Promise<void> = Promise.resolve();

  constructor(form: 'state' | 'changes', isWildcardType: boolean, deps: WatchedTypeDependencies, tellsAbsence = false) {
    this.#form = form;
    this.#isWildcardType = isWildcardType;
    this.#tellsAbsence = tellsAbsence;
    this.#deps = deps;
    this.#record = new TypeRecord(deps.clock);
    this.#lifetimes = new Lifetimes(deps.clock, (name) => this.#expired(name));
  }

  get isWildcard(): boolean {
    return this.#ofAll.size > 0;
  }

  get names(): Iterable<string> {
    return this.#asked.size === 0 ? this.#byName.keys() : [...this.#byName.keys(), ...this.#asked.keys()];
  }

  get isEmpty(): boolean {
    return this.#watches.size === 0;
  }

  has(name: string): boolean {
    return this.#byName.has(name) || this.#asked.has(name);
  }

  /** Somebody who is told of all wants one that the server may not tell of by itself. */
  ask(name: string): void {
    this.#asked.set(name, (this.#asked.get(name) ?? 0) + 1);
  }

  unask(name: string): void {
    const others = (this.#asked.get(name) ?? 1) - 1;
    if (others > 0) this.#asked.set(name, others);
    else this.#asked.delete(name);
  }

  report(typeName: string): TypeReport {
    return this.#record.report(typeName, this.isWildcard ? null : this.#byName.size);
  }

  add(watch: Watch): void {
    this.#lastWatch += 1;
    this.#watches.set(watch, this.#lastWatch);
    if (watch.names === undefined) this.#ofAll.add(watch);
    for (const name of watch.names ?? []) {
      const watches = this.#byName.get(name);
      if (watches === undefined) this.#byName.set(name, new Set([watch]));
      else watches.add(watch);
    }
  }

  remove(watch: Watch): void {
    this.#watches.delete(watch);
    this.#ofAll.delete(watch);
    if (this.isEmpty) this.#news.keepOnly([]);
    for (const name of watch.names ?? []) {
      const watches = this.#byName.get(name);
      watches?.delete(watch);
      if (watches?.size !== 0) continue;
      this.#byName.delete(name);
      this.#news.forget(name);
      this.#lifetimes.forget(name);
    }
  }

  close(): void {
    this.#lifetimes.close();
  }

  /** The server could not be asked. */
  lost(): void {
    for (const { stats } of this.#watches.keys()) stats.attempt().failed();
  }

  /** It has answered that nothing is new. */
  unchanged(): void {
    for (const { stats } of this.#watches.keys()) stats.attempt();
  }

  /** It has said again what has been accepted. */
  repeated(): void {
    this.#record.took(this.#version, []);
    for (const { stats } of this.#watches.keys()) stats.attempt().updated(this.#version);
  }

  /** It has answered what is no response. @param reason why. */
  unreadable(reason: string): void {
    this.#record.took('', [reason]);
    for (const { stats, owner } of this.#watches.keys()) {
      stats.attempt().rejected();
      owner.onFailed();
    }
  }

  /** Resolves when all responses of before have been taken in. */
  get idle(): Promise<void> {
    return this.#taking;
  }

  /**
   * @param before what it may refer to.
   * @returns undefined for one that is not taken in, since another waits behind it that says all that it has said, and later.
   */
  take(response: RawResponse, before: Promise<void>): Promise<TakenResponse | undefined> {
    this.#waiting.push(response);
    const taken = Promise.all([this.#taking, before]).then(async () => {
      this.#waiting.shift();
      if (this.#said?.response === response) this.#said = undefined;
      return (await this.#isOvertaken(response)) ? undefined : await this.#take(response);
    });
    this.#taking = taken.then(
      () => {},
      () => {},
    );
    return taken;
  }

  /** By the last that waits: of a server that tells all there is each time. */
  async #isOvertaken(response: RawResponse): Promise<boolean> {
    const latest = this.#waiting.at(-1);
    // Whoever is never quiet is listened to now and then.
    const isOvertaken =
      this.#form === 'state' &&
      latest !== undefined &&
      this.#overtaken < MOST_OVERTAKEN &&
      (await this.#covers(latest, response));
    this.#overtaken = isOvertaken ? this.#overtaken + 1 : 0;
    return isOvertaken;
  }

  /** Who has the later one would not notice that the other was never there. */
  async #covers(later: RawResponse, earlier: RawResponse): Promise<boolean> {
    const slice = this.#slice;
    if (this.#said?.response !== later) this.#said = { response: later, names: await namesIn(later, slice) };
    const { names } = this.#said;
    if (names === undefined) return false;
    if (this.#isWildcardType) return true;
    for (const { name } of earlier.resources) {
      if (name === '' || !names.has(name)) return false;
      if (slice.isOver()) await slice.rest();
    }
    return true;
  }

  async #take(response: RawResponse): Promise<TakenResponse> {
    const slice = this.#slice;
    const refusals = new Set<string>();
    if (slice.isOverNow()) await slice.rest();
    const read: ReadResponse = { ...response, resources: await readAll(response.resources, slice) };
    await this.#renewLifetimes(read, slice);
    for (const refusal of this.#nameless(read)) refusals.add(refusal);
    const { shares, repeated } = await this.#shares(read, slice);
    // What is as it was costs time as well, while traffic waits for what is not.
    for (const isNews of [true, false]) {
      for (const [watch, share] of shares) {
        // It may have gone while others were told.
        if (share.isNews !== isNews || !this.#watches.has(watch)) continue;
        const told = this.#tell(watch, read, share);
        // Most of them have taken it in already, and there may be thousands.
        for (const refusal of told instanceof Promise ? await told : told) refusals.add(refusal);
        if (slice.isOverNow()) await slice.rest();
      }
    }
    for (const [watch, placed] of repeated) {
      if (!this.#watches.has(watch)) continue;
      const told = this.#repeat(watch, read, placed);
      if (told !== NOTHING_REFUSED)
        for (const refusal of told instanceof Promise ? await told : told) refusals.add(refusal);
      if (slice.isOver()) await slice.rest();
    }
    this.#version = response.version;
    this.#complaints = refusals;
    this.#record.took(response.version, [...refusals]);
    return { read, refusals: [...refusals] };
  }

  async #renewLifetimes({ resources, removed }: ReadResponse, slice: TimeSlice): Promise<void> {
    for (const resource of resources) {
      const { name, ttlMs } = resource;
      if (name !== '') this.#lifetimes.renew(name, ttlMs);
      if (slice.isOver()) await slice.rest();
    }
    for (const name of removed) this.#lifetimes.forget(name);
  }

  /** Whom it concerns, of those that there are now, and with what. */
  async #shares({ resources, removed }: ReadResponse, slice: TimeSlice): Promise<Shares> {
    const shares = new Map<Watch, Share>();
    const repeated = new Map<Watch, Placed>();
    // Who comes meanwhile would get a part only, and take it for all there is.
    const last = this.#lastWatch;
    const isPresent = (watch: Watch): boolean => this.#watches.get(watch)! <= last;
    const shareOf = (watch: Watch): Share => {
      const share = shares.get(watch) ?? { resources: [], removed: [], isNews: false };
      shares.set(watch, share);
      return share;
    };
    const give = (watch: Watch, placed: Placed, isNews: boolean): void => {
      const share = shareOf(watch);
      share.resources.push(placed);
      share.isNews ||= isNews;
    };
    const giveNamed = (watch: Watch, index: number, raw: RawResource, isSame: boolean): void => {
      if (!isPresent(watch)) return;
      const isNews = !isSame || this.#watches.get(watch)! > this.#lastTold;
      const isOnly = watch.names?.size === 1;
      const first = repeated.get(watch);
      const isSecond = isOnly && (first !== undefined || (shares.get(watch)?.resources.length ?? 0) > 0);
      if (isOnly && !isNews && !isSecond && !this.#isWildcardType && watch.owner.onRepeated !== undefined) {
        repeated.set(watch, { index, raw });
        return;
      }
      if (first !== undefined) {
        repeated.delete(watch);
        give(watch, first, false);
      }
      // Which of two of one name is in force, its owner knows.
      if (isSecond) this.#news.forget(raw.name);
      give(watch, { index, raw }, isNews);
    };
    const gone = (name: string): void => {
      for (const watch of this.#wantedBy(name)) if (isPresent(watch)) shareOf(watch).removed.push(name);
    };
    const isState = this.#form === 'state';
    // Of a type whose responses say all there is they concern whoever asks for it, even where they say nothing.
    if (this.#isWildcardType) for (const watch of this.#watches.keys()) shareOf(watch);
    else for (const watch of this.#ofAll) shareOf(watch);
    const unasked: string[] = [];
    for (let index = 0; index < resources.length; index += 1) {
      const raw = resources[index]!;
      if (slice.isOver()) await slice.rest();
      if (raw.bytes === undefined && this.#tellsAbsence && raw.ttlMs === undefined) {
        for (const name of [raw.name, ...(raw.aliases ?? [])]) gone(name);
        this.#news.forget(raw.name);
      }
      // A heartbeat says nothing new.
      if (raw.bytes === undefined) continue;
      const named = this.#byName.get(raw.name);
      const isWanted = named !== undefined || this.#ofAll.size > 0;
      const isSame = isState && isWanted && !this.#news.note(raw);
      // Whoever wants all is told of those without names, too, so that they are refused by their place.
      for (const watch of this.#ofAll)
        if (isPresent(watch) && wants(watch, raw.name)) give(watch, { index, raw }, true);
      if (named !== undefined) for (const watch of named) giveNamed(watch, index, raw, isSame);
      if (raw.name !== '' && !this.isWildcard && named === undefined) unasked.push(raw.name);
    }
    this.#noteUnasked(unasked);
    for (const name of removed) gone(name);
    this.#lastTold = last;
    if (isState && this.#isWildcardType) this.#news.keepOnly(resources);
    return { shares, repeated };
  }

  /** They change nothing; a server that sends them says all it has, whatever it is asked. */
  #noteUnasked(names: readonly string[]): void {
    this.#record.unasked = names.length;
    if (names.length === 0) return;
    const { log, server } = this.#deps;
    const some = names.slice(0, MOST_NAMED).join(', ');
    log.ofFile(FILE).debug(`${server()} names ${names.length} resources that nobody has asked for: ${some}`);
  }

  *#wantedBy(name: string): Iterable<Watch> {
    for (const watch of this.#ofAll) if (wants(watch, name)) yield watch;
    yield* this.#byName.get(name) ?? [];
  }

  /** Resources that nobody can be told of by their names. */
  *#nameless({ resources }: ReadResponse): Iterable<string> {
    const [watch] = this.#watches.keys();
    if (watch === undefined) return;
    for (let index = 0; index < resources.length; index += 1) {
      const raw = resources[index]!;
      if (raw.name !== '' || raw.bytes === undefined || this.#ofAll.size > 0) continue;
      const read = readRawResource(raw, placeOf(index), watch.type(), this.#deps.unknownFields);
      if (read.isGood) yield `${placeOf(index)}: has no name`;
      else yield* read.errors;
    }
  }

  #tell(watch: Watch, response: ReadResponse, share: Share): readonly string[] | Promise<readonly string[]> {
    const { version, resources } = response;
    const attempt = watch.stats.attempt();
    const isOfAll = watch.names === undefined;
    // Of names that were asked for, those that are missing are as they were: servers may answer in parts. So they are where a
    // response says of some only that they live on.
    const isOfState = this.#form === 'state' && (isOfAll || this.#isWildcardType);
    const isComplete = isOfState && resources.every(({ bytes }) => bytes !== undefined);
    const ended = (refusals: readonly string[]): readonly string[] => {
      if (refusals.length === 0) attempt.updated(version);
      else attempt.rejected();
      for (const refusal of refusals) this.#complain(refusal);
      return refusals;
    };
    const failed = (error: unknown): readonly string[] => {
      attempt.rejected();
      this.#deps.faults.report('taking in resources of a management server', error);
      return [errorMessage(error)];
    };
    try {
      const news = { version, told: share.resources, removed: share.removed, isComplete };
      const taking = watch.owner.onResponse(this.#discovered(watch, news));
      return taking instanceof Promise ? taking.then(ended).catch(failed) : ended(taking);
    } catch (error) {
      return failed(error);
    }
  }

  /** What is as it was concerns most owners little. */
  #repeat(watch: Watch, response: ReadResponse, placed: Placed): readonly string[] | Promise<readonly string[]> {
    try {
      if (watch.owner.onRepeated!(response.version)) {
        watch.stats.attempt().updated(response.version);
        return NOTHING_REFUSED;
      }
    } catch (error) {
      this.#deps.faults.report('taking in what is as it was', error);
    }
    return this.#tell(watch, response, { resources: [placed], removed: [], isNews: false });
  }

  #complain(refusal: string): void {
    const { log, server } = this.#deps;
    const text = `resources from ${server()} are refused: ${refusal}`;
    if (this.#complaints.has(refusal)) log.ofFile(FILE).debug(text);
    else log.warning(text);
  }

  #discovered({ type }: Watch, { version, told, removed, isComplete }: News): DiscoveredResponse<unknown> {
    const { unknownFields } = this.#deps;
    const resourceType = type();
    return {
      version,
      extent: isComplete ? 'all' : 'changes',
      removed,
      names: told.map(({ raw }) => raw.name),
      warnings: [],
      *offered() {
        for (const { index, raw } of told) yield offerRawResource(raw, placeOf(index), resourceType, unknownFields);
      },
    };
  }

  #expired(name: string): void {
    const { faults, log, server } = this.#deps;
    log.info(`resource ${name} from ${server()} has lived its time`);
    this.#news.forget(name);
    const news = { version: this.#version, told: [], removed: [name], isComplete: false };
    faults.run('the end of a resource', async () => {
      for (const watch of [...this.#wantedBy(name)]) await watch.owner.onResponse(this.#discovered(watch, news));
    });
  }
}

const NOTHING_REFUSED: readonly string[] = [];

/** One who wants all of them. */
function wants({ prefix }: Watch, name: string): boolean {
  return prefix === undefined || name.startsWith(prefix);
}

/** @returns undefined where it says of some only that they live on, or are not there. */
async function namesIn({ resources }: RawResponse, slice: TimeSlice): Promise<ReadonlySet<string> | undefined> {
  const names = new Set<string>();
  for (const { name, bytes } of resources) {
    if (bytes === undefined) return undefined;
    names.add(name);
    if (slice.isOver()) await slice.rest();
  }
  return names;
}

async function readAll(resources: Iterable<RawResource>, slice: TimeSlice): Promise<readonly RawResource[]> {
  const read: RawResource[] = [];
  for (const resource of resources) {
    read.push(resource);
    if (slice.isOver()) await slice.rest();
  }
  return read;
}

function placeOf(index: number): string {
  return `resources[${index}]`;
}
