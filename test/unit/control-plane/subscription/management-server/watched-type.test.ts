// Responses of a management server on their way to those who want some of them, held against a model: responses come while others are
// taken in, and who wants something comes and goes at any moment.

import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import {
  type DiscoveredResponse,
  discoveryService,
  encodeMessage,
  protoSchema,
  type RawResource,
  type RawResponse,
  type ResourceType,
  UnknownFieldPolicy,
} from '../../../../../src/config/index.ts';
import { WatchedType } from '../../../../../src/control-plane/subscription/management-server/watched-type.ts';
import type { SubscriptionRequest } from '../../../../../src/control-plane/subscription/subscription.ts';
import { Loggers } from '../../../../../src/log/index.ts';

import { NO_FAULTS } from '../../../../support/faults.ts';
import { ManualClock } from '../../../../support/manual-clock.ts';

const ASSIGNMENT = 'proxy.config.endpoint.v3.ClusterLoadAssignment';
const NAMES = ['a', 'b', 'c'];
/** So many that several looks at the clock fall into one walk. */
const FILLERS = 200;

type Watch = Omit<SubscriptionRequest<unknown>, 'source'>;

function resource(name: string): RawResource {
  const bytes = encodeMessage(protoSchema().messageType(ASSIGNMENT), { cluster_name: name });
  return { name, version: '', typeUrl: `type.googleapis.com/${ASSIGNMENT}`, bytes, ttlMs: undefined };
}

const RESOURCES = new Map(NAMES.map((name) => [name, resource(name)]));
const FILLER = Array.from({ length: FILLERS }, (_, index) => resource(`filler-${index}`));

function responseOf(version: number, names: readonly string[]): RawResponse {
  const service = discoveryService(ASSIGNMENT);
  // What is wanted stands at both ends, so that somebody may come between the two.
  const found = names.map((name) => RESOURCES.get(name)!);
  return {
    typeUrl: service.typeUrl.v3,
    service,
    version: String(version),
    nonce: String(version),
    controlPlane: '',
    removed: [],
    resources: [...found.slice(1), ...FILLER, ...found.slice(0, 1)],
  };
}

class Watcher {
  readonly joinedAfter: number;
  readonly told: { readonly version: number; readonly extent: string; readonly names: readonly string[] }[] = [];
  hasLeft = false;
  readonly watch: Watch;

  /** @param name undefined for all. @param lastOffered responses that had come when it joined. */
  constructor(name: string | undefined, lastOffered: number) {
    this.joinedAfter = lastOffered;
    const attempt = () => ({ updated() {}, rejected() {}, failed() {} });
    this.watch = {
      names: name === undefined ? undefined : new Set([name]),
      type: () => ({ typeName: ASSIGNMENT }) as unknown as ResourceType<unknown>,
      stats: { attempt } as unknown as Watch['stats'],
      owner: {
        onResponse: async (response: DiscoveredResponse<unknown>) => {
          assert.equal(this.hasLeft, false, 'it is told of nothing when it has left');
          const names = [...response.offered()].map((offered) => offered.name);
          assert.deepEqual(response.names, names);
          this.told.push({ version: Number(response.version), extent: response.extent, names });
          if (Number(response.version) % 2 === 0) await nextTurn();
          return [];
        },
        onFailed() {},
      },
    };
  }
}

type Step =
  | { readonly kind: 'respond'; readonly names: readonly string[] }
  | { readonly kind: 'join'; readonly name: string | undefined }
  | { readonly kind: 'leave'; readonly which: number }
  | { readonly kind: 'turns'; readonly count: number };

const STEPS: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('respond' as const), names: fc.subarray(NAMES) }),
    fc.record({ kind: fc.constant('join' as const), name: fc.constantFrom(...NAMES, undefined) }),
    fc.record({ kind: fc.constant('leave' as const), which: fc.nat() }),
    fc.record({ kind: fc.constant('turns' as const), count: fc.integer({ min: 1, max: 6 }) }),
  ),
  { minLength: 5, maxLength: 30 },
);

function watchedType(isWildcardType: boolean, clock = new ManualClock()): WatchedType {
  const log = new Loggers({ levels: { default: 'off' }, threadId: 0, sink: { write() {} } }).get('config');
  const unknownFields = new UnknownFieldPolicy('reject');
  return new WatchedType('state', isWildcardType, {
    clock,
    faults: NO_FAULTS,
    log,
    unknownFields,
    server: () => 'server',
  });
}

async function run(steps: readonly Step[], isWildcardType: boolean): Promise<void> {
  const watched = watchedType(isWildcardType);
  const watchers: Watcher[] = [];
  const offered: (readonly string[])[] = [];
  const taken: number[] = [];
  const ended: number[] = [];
  const waiting: Promise<unknown>[] = [];
  for (const step of steps) {
    if (step.kind === 'turns') for (let turn = 0; turn < step.count; turn += 1) await nextTurn();
    else if (step.kind === 'join') {
      const watcher = new Watcher(step.name, offered.length);
      watchers.push(watcher);
      watched.add(watcher.watch);
    } else if (step.kind === 'leave') {
      const present = watchers.filter(({ hasLeft }) => !hasLeft);
      const watcher = present[step.which % present.length];
      if (watcher === undefined) continue;
      watcher.hasLeft = true;
      watched.remove(watcher.watch);
    } else {
      const version = offered.push(step.names);
      waiting.push(
        watched.take(responseOf(version, step.names), Promise.resolve()).then((result) => {
          ended.push(version);
          if (result === undefined) return;
          assert.deepEqual(result.refusals, []);
          assert.equal(result.read.resources.length, step.names.length + FILLERS);
          taken.push(version);
        }),
      );
    }
  }
  await Promise.all(waiting);
  assert.deepEqual(
    ended,
    offered.map((_, index) => index + 1),
    'one response after the other',
  );
  for (const [index, names] of offered.entries()) {
    const version = index + 1;
    if (taken.includes(version)) continue;
    const isSaidAgain = taken.some(
      (later) => later > version && (isWildcardType || names.every((name) => offered[later - 1]!.includes(name))),
    );
    assert.ok(isSaidAgain, 'what is passed over is said by a later one that is taken in');
  }
  for (const { told, joinedAfter, hasLeft, watch } of watchers) {
    const versions = told.map(({ version }) => version);
    assert.deepEqual(
      versions,
      [...new Set(versions)].sort((a, b) => a - b),
      'each is told once, in order',
    );
    const isOfAll = watch.names === undefined;
    for (const { version, extent, names } of told) {
      const inResponse = offered[version - 1]!;
      const wanted = isOfAll ? FILLERS + inResponse.length : inResponse.filter((name) => watch.names!.has(name)).length;
      assert.equal(names.length, wanted, 'all that it wants of a response');
      assert.equal(extent, isOfAll || isWildcardType ? 'all' : 'changes');
    }
    if (hasLeft) continue;
    for (const [index, names] of offered.entries()) {
      const version = index + 1;
      const concerns = isOfAll || isWildcardType || names.some((name) => watch.names!.has(name));
      if (version > joinedAfter && concerns && taken.includes(version))
        assert.ok(versions.includes(version), 'what came when it was there');
    }
  }
  watched.close();
}

describe('responses on their way', () => {
  for (const isWildcardType of [false, true]) {
    const kind = isWildcardType ? 'all there is' : 'what was asked for';
    it(`reach whoever was there, whole and in their order, where they say ${kind}`, async (t) => {
      // Each look at the clock finds a slice over.
      let nowMs = 0;
      t.mock.method(performance, 'now', () => {
        nowMs += 100;
        return nowMs;
      });
      await fc.assert(
        fc.asyncProperty(STEPS, (steps) => run(steps, isWildcardType)),
        { numRuns: 60 },
      );
    });
  }
});

describe('responses of all there is that wait', () => {
  function take(watched: WatchedType, count: number): Promise<readonly number[]> {
    const versions = Array.from({ length: count }, (_, at) => at + 1);
    const taken = versions.map(async (version) => {
      const result = await watched.take(responseOf(version, NAMES), Promise.resolve());
      return result === undefined ? [] : [version];
    });
    return Promise.all(taken).then((all) => all.flat());
  }

  for (const isWildcardType of [false, true]) {
    const kind = isWildcardType ? 'all there is' : 'what was asked for';
    it(`are passed over for the last of them, but one in 33, where they say ${kind}`, async () => {
      const watched = watchedType(isWildcardType);
      const watcher = new Watcher('a', 0);
      watched.add(watcher.watch);
      assert.deepEqual(await take(watched, 10), [10]);
      assert.deepEqual(await take(watched, 100), [33, 66, 99, 100]);
      assert.deepEqual(
        watcher.told.map(({ version }) => version),
        [10, 33, 66, 99, 100],
      );
      watched.close();
    });
  }

  it('are taken in where the last says less, or of some only that they live on', async () => {
    const whole = { ...responseOf(1, []), resources: [resource('a'), resource('b')] };
    const heartbeat = { ...resource('b'), bytes: undefined };
    for (const resources of [[resource('a')], [resource('a'), heartbeat], []]) {
      const watched = watchedType(false);
      watched.add(new Watcher('a', 0).watch);
      const last = { ...responseOf(2, []), resources };
      const taken = [whole, last].map((response) => watched.take(response, Promise.resolve()));
      assert.deepEqual(
        (await Promise.all(taken)).map((result) => result?.read.version),
        ['1', '2'],
      );
      watched.close();
    }
  });
});

describe('what is as it was in the response before', () => {
  interface Round {
    /** Names with what is said of them. */
    readonly said: readonly (readonly [name: string, text: number])[];
    /** Of one that the owner has lost again, and that leaves with all it knows, and comes back. */
    readonly loses: string;
    readonly leaves: string;
  }

  const ROUNDS: fc.Arbitrary<readonly Round[]> = fc.array(
    fc.record({
      said: fc.array(fc.tuple(fc.constantFrom(...NAMES), fc.integer({ min: 1, max: 2 })), { maxLength: 5 }),
      loses: fc.constantFrom('', '', ...NAMES),
      leaves: fc.constantFrom('', '', ...NAMES),
    }),
    { maxLength: 12 },
  );

  /** The first of its name is what counts for it. */
  class Owner {
    text: number | undefined;
    repeats = 0;
    readonly watch: Watch;
    #next: number | undefined;

    constructor(name: string) {
      this.watch = {
        ...new Watcher(name, 0).watch,
        owner: {
          onResponse: (response) => {
            for (const _ of response.offered()) this.text = this.#next;
            return [];
          },
          onRepeated: () => {
            if (this.text === undefined) return false;
            assert.equal(this.#next, this.text, 'it has been told that before');
            this.repeats += 1;
            return true;
          },
          onFailed() {},
        },
      };
    }

    expect(text: number | undefined): void {
      this.#next = text;
    }
  }

  function said(name: string, text: number): RawResource {
    const message = { cluster_name: name, policy: { overprovisioning_factor: { value: 100 + text } } };
    return { ...resource(name), bytes: encodeMessage(protoSchema().messageType(ASSIGNMENT), message) };
  }

  it('is told in short only to whom it has been told last', async () => {
    let repeats = 0;
    await fc.assert(
      fc.asyncProperty(ROUNDS, async (rounds) => {
        const watched = watchedType(false);
        const owners = new Map(NAMES.map((name) => [name, new Owner(name)]));
        for (const { watch } of owners.values()) watched.add(watch);
        for (const [index, round] of rounds.entries()) {
          const { loses, leaves } = round;
          const lost = owners.get(loses);
          if (lost !== undefined) lost.text = undefined;
          const former = owners.get(leaves);
          if (former !== undefined) {
            repeats += former.repeats;
            watched.remove(former.watch);
            owners.set(leaves, new Owner(leaves));
            watched.add(owners.get(leaves)!.watch);
          }
          const first = new Map(round.said.toReversed());
          for (const [name, owner] of owners) owner.expect(first.get(name));
          const resources = round.said.map(([name, text]) => said(name, text));
          await watched.take({ ...responseOf(index, []), resources }, Promise.resolve());
          for (const [name, text] of first) assert.equal(owners.get(name)!.text, text);
        }
        for (const owner of owners.values()) repeats += owner.repeats;
        watched.close();
      }),
      { numRuns: 200 },
    );
    assert.ok(repeats > 20, `${repeats} repeats`);
  });

  it('is told in full when it has lived its time in between', async () => {
    const clock = new ManualClock();
    const watched = watchedType(false, clock);
    const owner = new Owner('a');
    watched.add(owner.watch);
    owner.expect(1);
    const response = { ...responseOf(1, []), resources: [{ ...said('a', 1), ttlMs: 1000 }] };
    const told = owner.watch.owner.onResponse;
    const extents: string[] = [];
    owner.watch.owner.onResponse = (news) => {
      extents.push(news.removed.join());
      return told(news);
    };
    await watched.take(response, Promise.resolve());
    await watched.take(response, Promise.resolve());
    assert.deepEqual([extents, owner.repeats], [[''], 1]);
    clock.turn(1000);
    await nextTurn();
    await watched.take(response, Promise.resolve());
    assert.deepEqual([extents, owner.repeats], [['', 'a', ''], 1]);
    watched.close();
  });
});

describe('a long response that tells the state of the world', () => {
  const names = Array.from({ length: 100 }, (_, at) => `service-${at}`);

  /** Whoever is told notes his name. */
  function scene(): { readonly watched: WatchedType; readonly order: string[]; add(name: string): void } {
    const order: string[] = [];
    const watched = watchedType(false);
    const add = (name: string): void => {
      const watcher = new Watcher(name, 0);
      const onResponse = (): readonly string[] => {
        order.push(name);
        return [];
      };
      watched.add({ ...watcher.watch, owner: { onResponse, onFailed() {} } });
    };
    for (const name of names) add(name);
    return { watched, order, add };
  }

  function response(version: number, changed: string | undefined): RawResponse {
    const bytesOf = (cluster_name: string): Uint8Array =>
      encodeMessage(protoSchema().messageType(ASSIGNMENT), {
        cluster_name,
        ...(cluster_name === changed && { policy: { overprovisioning_factor: { value: 100 + version } } }),
      });
    return {
      ...responseOf(version, []),
      resources: [...names, 'late'].map((name) => ({ ...resource(name), bytes: bytesOf(name) })),
    };
  }

  it('is told first to those of whom it says something new, and to those who have come since the last', async () => {
    const { watched, order, add } = scene();
    await watched.take(response(1, undefined), Promise.resolve());
    assert.deepEqual(order.splice(0), names);
    await watched.take(response(2, 'service-77'), Promise.resolve());
    const others = names.filter((name) => name !== 'service-77');
    assert.deepEqual(order.splice(0), ['service-77', ...others]);
    add('late');
    await watched.take(response(3, undefined), Promise.resolve());
    assert.deepEqual(order.splice(0), ['service-77', 'late', ...others]);
    watched.close();
  });

  it('is long as well where it is many short ones: others have their turns', async (t) => {
    const { watched, order } = scene();
    let nowMs = performance.now();
    // Ten of them fill a slice.
    t.mock.method(performance, 'now', () => {
      nowMs += 0.3;
      return nowMs;
    });
    const taking = names.map((name, at) =>
      watched.take({ ...responseOf(at, []), resources: [resource(name)] }, Promise.resolve()),
    );
    let turns = 0;
    for (let taken = false; !taken; turns += 1) {
      await nextTurn();
      taken = order.length === names.length;
    }
    await Promise.all(taking);
    assert.ok(turns >= 5, `${turns} turns`);
    watched.close();
  });
});
