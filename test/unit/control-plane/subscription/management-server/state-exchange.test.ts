// What a management server is told in the state of the world, over any course of subscriptions, responses and streams.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { discoveryService, protoSchema, type ReadResponse } from '../../../../../src/config/index.ts';
import { decodeMessage } from '../../../../../src/config/proto/wire.ts';
import { StateExchange } from '../../../../../src/control-plane/subscription/management-server/state-exchange.ts';

const SERVICE = discoveryService('proxy.config.endpoint.v3.ClusterLoadAssignment');
const REQUEST = 'proxy.service.discovery.v3.DiscoveryRequest';
const NAMES = ['a', 'b', 'c', 'd'];

interface Request {
  readonly resource_names: readonly string[];
  readonly version_info: string;
  readonly response_nonce: string;
  readonly error_detail: { readonly message: string } | null;
}

/** What a server is told of a response. */
interface Answer {
  readonly version: string;
  readonly nonce: string;
  /** Why it is refused. */
  readonly reason: string | undefined;
}

function responseOf(version: number): ReadResponse {
  return {
    typeUrl: SERVICE.typeUrl.v3,
    service: SERVICE,
    version: `v${version}`,
    nonce: `n${version}`,
    controlPlane: '',
    removed: [],
    resources: [],
  };
}

/** What a server knows, and who wants what. */
class Scene {
  readonly #names = new Set<string>();
  readonly #exchange: StateExchange;
  /** Responses on their way in, with the stream that they have come by. */
  readonly #pending: { readonly response: ReadResponse; readonly stream: number }[] = [];
  #stream = 0;
  #last = 0;
  #accepted = '';
  #nonce = '';
  #unanswered = 0;
  #refusals: Answer[] = [];
  /** The server of this stream has been told what is wanted. */
  #isTold = false;

  constructor() {
    const names = this.#names;
    const wanted = { isWildcard: false, names, has: (name: string) => names.has(name) };
    this.#exchange = new StateExchange({ service: SERVICE, typeUrl: SERVICE.typeUrl.v3 }, wanted);
    this.#exchange.begin();
  }

  toggle(name: string): void {
    this.#isTold = false;
    if (this.#names.delete(name)) this.#exchange.went();
    else {
      this.#names.add(name);
      this.#exchange.came();
    }
  }

  /** @returns whether there was something to say. */
  say(): boolean {
    const isTaking = this.#pending.some(({ stream }) => stream === this.#stream);
    const refused = this.#refusals[0];
    if (refused === undefined && isTaking && this.#unanswered < 16) assert.equal(this.#exchange.isDue, false);
    if (!this.#exchange.isDue) return false;
    // What is wanted, and what is refused, the server hears at once.
    assert.equal(this.#exchange.canWait, refused === undefined && this.#isTold);
    this.#isTold = true;
    const bytes = this.#exchange.next(undefined);
    const request = decodeMessage(protoSchema().messageType(REQUEST), bytes) as unknown as Request;
    assert.deepEqual([...request.resource_names], [...this.#names]);
    const { version_info: version, response_nonce: nonce, error_detail } = request;
    const expected = refused ?? { version: this.#accepted, nonce: this.#nonce, reason: undefined };
    assert.deepEqual({ version, nonce, reason: error_detail?.message }, expected);
    this.#refusals.shift();
    this.#unanswered = 0;
    return true;
  }

  arrive(): void {
    this.#last += 1;
    this.#pending.push({ response: responseOf(this.#last), stream: this.#stream });
    this.#exchange.taking();
  }

  take(isRefused: boolean): void {
    const next = this.#pending.shift();
    if (next === undefined) return;
    const { response, stream } = next;
    const isOver = stream !== this.#stream;
    const { version, nonce } = response;
    const reason = isRefused ? `${version} is bad` : undefined;
    this.#exchange.taken(response, reason, isOver);
    if (!isRefused) this.#accepted = version;
    if (isOver) return;
    this.#nonce = nonce;
    this.#unanswered += 1;
    if (isRefused) this.#refusals = [...this.#refusals, { version: this.#accepted, nonce, reason }].slice(-16);
  }

  /** A later one says all that the next one says. */
  passOver(): void {
    const next = this.#pending.shift();
    if (next !== undefined) this.#exchange.overtaken(next.stream !== this.#stream);
  }

  /** @returns how much there was to say. */
  sayAll(): number {
    let said = 0;
    while (this.say()) said += 1;
    return said;
  }

  begin(): void {
    this.#stream += 1;
    this.#exchange.begin();
    this.#nonce = '';
    this.#unanswered = 0;
    this.#refusals = [];
    this.#isTold = false;
  }
}

describe('requests in the state of the world', () => {
  it('name what is wanted when they are made, answer the last response, and tell of each refusal', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('toggle' as const), name: fc.constantFrom(...NAMES) }),
      fc.record({
        kind: fc.constantFrom('request', 'arrive', 'take', 'refuse', 'pass over'),
        name: fc.constant(''),
      }),
      fc.record({ kind: fc.constant('stream' as const), name: fc.constant('') }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const scene = new Scene();
        for (const { kind, name } of steps) {
          if (kind === 'toggle') scene.toggle(name);
          else if (kind === 'request') scene.say();
          else if (kind === 'arrive') scene.arrive();
          else if (kind === 'stream') scene.begin();
          else if (kind === 'pass over') scene.passOver();
          else scene.take(kind === 'refuse');
        }
      }),
    );
  });

  it('answer the last of many responses in the place of all of them, and one in sixteen of those that do not end', () => {
    const scene = new Scene();
    scene.toggle('a');
    scene.say();
    for (let response = 0; response < 5; response += 1) scene.arrive();
    const answered: boolean[] = [];
    for (let response = 0; response < 5; response += 1) {
      scene.take(false);
      answered.push(scene.say());
    }
    assert.deepEqual(answered, [false, false, false, false, true]);
    scene.arrive();
    const answers: number[] = [];
    for (let response = 1; response <= 40; response += 1) {
      scene.arrive();
      scene.take(false);
      if (scene.say()) answers.push(response);
    }
    assert.deepEqual(answers, [16, 32]);
  });

  it('tell of a refusal at once, whatever comes behind it, and never twice', () => {
    const scene = new Scene();
    scene.toggle('a');
    scene.say();
    for (let response = 0; response < 4; response += 1) scene.arrive();
    scene.take(false);
    assert.equal(scene.sayAll(), 0);
    scene.take(true);
    assert.equal(scene.sayAll(), 1);
    scene.take(true);
    scene.take(false);
    // That of the third, and then the last.
    assert.equal(scene.sayAll(), 2);
    for (let response = 0; response < 40; response += 1) {
      scene.arrive();
      scene.take(true);
    }
    assert.equal(scene.sayAll(), 16);
  });
});
