// What a management server is told of by changes, over any course of subscriptions, responses and streams.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { discoveryService, protoSchema, type ReadResponse } from '../../../../../src/config/index.ts';
import { decodeMessage } from '../../../../../src/config/proto/wire.ts';
import { ChangesExchange } from '../../../../../src/control-plane/subscription/management-server/changes-exchange.ts';

const SERVICE = discoveryService('proxy.config.endpoint.v3.ClusterLoadAssignment');
const REQUEST = 'proxy.service.discovery.v3.DeltaDiscoveryRequest';
const NAMES = ['a', 'b', 'c'];

interface Request {
  readonly resource_names_subscribe: readonly string[];
  readonly resource_names_unsubscribe: readonly string[];
  readonly initial_resource_versions: Readonly<Record<string, string>>;
}

function responseOf(names: readonly string[], version: number): ReadResponse {
  return {
    typeUrl: SERVICE.typeUrl.v3,
    service: SERVICE,
    version: '',
    nonce: `n${version}`,
    controlPlane: '',
    removed: [],
    resources: names.map((name) => {
      return { name, version: `v${version}`, typeUrl: SERVICE.typeUrl.v3, bytes: new Uint8Array(), ttlMs: undefined };
    }),
  };
}

/** Whoever wants names, as WatchedType keeps them, and a server that says once what it is asked for. */
class Scene {
  readonly #wants = new Map<string, number>();
  readonly #exchange: ChangesExchange;
  /** Names of which the server owes an answer. */
  readonly #owed = new Set<string>();
  /** That it takes for subscribed. */
  readonly #subscribed = new Set<string>();
  /** Those who have come and have not been told. */
  readonly waiting = new Set<string>();
  #responses = 0;

  constructor() {
    const wants = this.#wants;
    const wanted = {
      isWildcard: false,
      get names() {
        return wants.keys();
      },
      has: (name: string) => wants.has(name),
    };
    this.#exchange = new ChangesExchange({ service: SERVICE, typeUrl: SERVICE.typeUrl.v3 }, wanted);
    this.#exchange.begin();
  }

  come(name: string): void {
    this.#wants.set(name, (this.#wants.get(name) ?? 0) + 1);
    this.waiting.add(name);
    this.#exchange.came([name]);
  }

  go(name: string): void {
    const others = (this.#wants.get(name) ?? 0) - 1;
    if (others < 0) return;
    if (others > 0) this.#wants.set(name, others);
    else {
      this.#wants.delete(name);
      this.waiting.delete(name);
    }
    this.#exchange.went();
  }

  /** All requests that are due. */
  say(): void {
    while (this.#exchange.isDue) {
      const bytes = this.#exchange.next(undefined);
      const request = decodeMessage(protoSchema().messageType(REQUEST), bytes) as unknown as Request;
      const known = new Set(Object.keys(request.initial_resource_versions));
      for (const name of request.resource_names_subscribe) {
        this.#subscribed.add(name);
        if (!known.has(name)) this.#owed.add(name);
      }
      for (const name of request.resource_names_unsubscribe) {
        this.#subscribed.delete(name);
        this.#owed.delete(name);
      }
    }
    assert.deepEqual([...this.#subscribed].sort(), [...this.#wants.keys()].sort());
  }

  /** Who comes while a response is taken in is not told of it. */
  respond(comingMeanwhile: string | undefined): void {
    const names = [...this.#owed];
    this.#owed.clear();
    this.#responses += 1;
    const response = responseOf(names, this.#responses);
    this.#exchange.taking();
    for (const name of names) this.waiting.delete(name);
    if (comingMeanwhile !== undefined) this.come(comingMeanwhile);
    this.#exchange.taken(response, undefined, false);
  }

  breakOff(): void {
    this.#owed.clear();
    this.#subscribed.clear();
    this.#exchange.begin();
  }
}

describe('requests by changes', () => {
  it('ask for what is wanted, and again for those who come later, so that a server that answers once tells everybody', () => {
    const name = fc.constantFrom(...NAMES);
    const step = fc.oneof(
      fc.record({ kind: fc.constantFrom('come' as const, 'go' as const), name }),
      fc.record({ kind: fc.constant('respond' as const), name: fc.option(name) }),
      fc.record({ kind: fc.constantFrom('say' as const, 'break' as const), name: fc.constant(null) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const scene = new Scene();
        for (const each of steps) {
          if (each.kind === 'come') scene.come(each.name!);
          else if (each.kind === 'go') scene.go(each.name!);
          else if (each.kind === 'say') scene.say();
          else if (each.kind === 'respond') scene.respond(each.name ?? undefined);
          else scene.breakOff();
        }
        scene.say();
        scene.respond(undefined);
        assert.deepEqual([...scene.waiting], []);
      }),
    );
  });

  it('ask for all there are again for one who comes later', () => {
    let isWildcard = false;
    const wanted = {
      get isWildcard() {
        return isWildcard;
      },
      names: [],
      has: () => false,
    };
    const exchange = new ChangesExchange({ service: SERVICE, typeUrl: SERVICE.typeUrl.v3 }, wanted);
    exchange.begin();
    const subscribed = (): readonly string[] => {
      const bytes = exchange.next(undefined);
      return [
        ...(decodeMessage(protoSchema().messageType(REQUEST), bytes) as unknown as Request).resource_names_subscribe,
      ];
    };
    isWildcard = true;
    exchange.came(undefined);
    // The first request says so without a word.
    assert.deepEqual(subscribed(), []);
    assert.equal(exchange.isDue, false);
    exchange.came(undefined);
    assert.equal(exchange.isDue, true);
    assert.deepEqual(subscribed(), ['*']);
  });
});
