// Questions by HTTP against a server that a test plays: whoever comes, goes and fails at whatever time, everybody is told.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import {
  type DiscoveredResponse,
  discoveryService,
  RUNTIME_TYPE,
  UnknownFieldPolicy,
} from '../../../../../src/config/index.ts';
import { RequestGate } from '../../../../../src/control-plane/subscription/management-server/request-gate.ts';
import type { RestAnswer } from '../../../../../src/control-plane/subscription/rest-server/rest-client.ts';
import {
  RestPoll,
  type RestPollDependencies,
} from '../../../../../src/control-plane/subscription/rest-server/rest-poll.ts';
import type { Subscription } from '../../../../../src/control-plane/subscription/subscription.ts';
import type { SubscriptionStats } from '../../../../../src/control-plane/subscription/subscription-stats.ts';
import { Loggers } from '../../../../../src/log/index.ts';
import { NO_FAULTS } from '../../../../support/faults.ts';
import { ManualClock } from '../../../../support/manual-clock.ts';

const REFRESH_MS = 10_000;
const NAMES = ['a', 'b', 'c'];
const SILENT = new Loggers({ levels: { default: 'off' }, sink: { write() {} }, threadId: 0 });

interface Question {
  readonly version: string;
  readonly names: readonly string[];
  readonly answer: (answer: RestAnswer) => void;
}

interface Watcher {
  readonly name: string;
  readonly subscription: Subscription;
  /** Of its resource, as it has been told last. */
  version: string | undefined;
  isGone: boolean;
}

class Scene {
  readonly clock = new ManualClock();
  readonly watchers: Watcher[] = [];
  readonly failures: string[] = [];
  /** Of all that the server has. */
  version = 1;
  question: Question | undefined;
  asked = 0;
  readonly #poll: RestPoll;

  constructor() {
    const { clock } = this;
    const host = { address: { kind: 'ip', ip: '127.0.0.1', port: 1 }, healthFlags: 0, priority: 0 };
    const cluster = { name: 'control', members: () => [host], stats: { add() {} } };
    const deps = {
      clock,
      faults: NO_FAULTS,
      log: SILENT.get('config'),
      unknownFields: new UnknownFieldPolicy('reject'),
      gate: new RequestGate(clock),
      node: { message: {} },
      cluster: () => cluster,
      random: { u32: () => 0 },
      client: {
        ask: (
          ...[, , { body }, , answer]: unknown[] & [unknown, unknown, { body: Buffer }, number, Question['answer']]
        ) => this.#asked(body, answer),
        close() {},
      },
    };
    const settings = {
      kind: 'rest',
      cluster: 'control',
      transportGeneration: 'v3',
      refreshDelayMs: REFRESH_MS,
      requestTimeoutMs: 1000,
    } as const;
    const service = discoveryService(RUNTIME_TYPE.typeName);
    this.#poll = new RestPoll(settings, service, 'v3', deps as unknown as RestPollDependencies);
  }

  #asked(body: Buffer, answer: Question['answer']): void {
    assert.equal(this.question, undefined, 'one question at a time');
    const { version_info: version = '', resource_names: names = [] } = JSON.parse(body.toString());
    this.asked += 1;
    this.question = { version, names, answer };
  }

  join(name: string): Watcher {
    const outcome = {
      updated() {},
      rejected: () => this.failures.push('rejected'),
      failed: () => this.failures.push('failed'),
    };
    const stats = { attempt: () => outcome } as unknown as SubscriptionStats;
    const owner = {
      onResponse: (response: DiscoveredResponse<unknown>): readonly string[] => {
        assert.equal(watcher.isGone, false, 'nothing is told to who has gone');
        if (response.names.includes(name)) watcher.version = response.version;
        return [];
      },
      onFailed() {},
    };
    const source = {} as never;
    const subscription = this.#poll.subscribe({
      source,
      names: new Set([name]),
      type: () => RUNTIME_TYPE,
      stats,
      owner,
    });
    const watcher: Watcher = { name, subscription, version: undefined, isGone: false };
    this.watchers.push(watcher);
    subscription.start();
    return watcher;
  }

  /** Until an answer is taken in: on a slow machine that rests behind each whom it is told to. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < this.watchers.length + 10; turn += 1) await nextTurn();
  }

  leave(watcher: Watcher): void {
    watcher.isGone = true;
    this.watchers.splice(this.watchers.indexOf(watcher), 1);
    watcher.subscription.close();
  }

  /** As a server does. */
  answer(): void {
    const { question } = this;
    if (question === undefined) return;
    this.question = undefined;
    const version = String(this.version);
    if (question.version === version) {
      question.answer({ kind: 'answered', status: 304, body: Buffer.alloc(0), fingerprint: '' });
      return;
    }
    const resources = question.names.map((name) => ({
      '@type': 'type.googleapis.com/envoy.service.runtime.v3.Runtime',
      name,
    }));
    const text = JSON.stringify({ version_info: version, resources });
    question.answer({ kind: 'answered', status: 200, body: Buffer.from(text), fingerprint: text });
  }

  /** As one does that is not well. */
  spoil(how: 'failed' | 'garbage' | '503'): void {
    const { question } = this;
    this.question = undefined;
    if (how === 'failed') question?.answer({ kind: 'failed', reason: 'ECONNREFUSED' });
    else {
      const status = how === '503' ? 503 : 200;
      question?.answer({ kind: 'answered', status, body: Buffer.from('{'), fingerprint: 'garbage' });
    }
  }
}

type Step =
  | { readonly kind: 'join'; readonly at: number }
  | { readonly kind: 'leave'; readonly at: number }
  | { readonly kind: 'turn'; readonly ms: number }
  | { readonly kind: 'answer' | 'failed' | 'garbage' | '503' | 'change' | 'rest' };

const STEP: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('join' as const), at: fc.nat(NAMES.length - 1) }),
  fc.record({ kind: fc.constant('leave' as const), at: fc.nat(5) }),
  fc.record({ kind: fc.constant('turn' as const), ms: fc.constantFrom(0, 1, 200, REFRESH_MS) }),
  fc.record({
    kind: fc.constantFrom(
      'answer' as const,
      'answer' as const,
      'failed' as const,
      'garbage' as const,
      '503' as const,
      'change' as const,
      'rest' as const,
    ),
  }),
);

async function take(scene: Scene, step: Step): Promise<void> {
  const { watchers } = scene;
  switch (step.kind) {
    case 'join':
      scene.join(NAMES[step.at]!);
      break;
    case 'leave':
      if (watchers.length > 0) scene.leave(watchers[step.at % watchers.length]!);
      break;
    case 'turn':
      scene.clock.turn(step.ms);
      break;
    case 'answer':
      scene.answer();
      break;
    case 'change':
      scene.version += 1;
      break;
    case 'rest':
      await nextTurn();
      break;
    default:
      scene.spoil(step.kind);
  }
}

describe('questions to a management server by HTTP', () => {
  it('tell everybody what there is, whoever has come, gone or failed, and never two of them at a time', async () => {
    const property = fc.asyncProperty(fc.array(STEP, { maxLength: 40 }), async (steps) => {
      const scene = new Scene();
      for (const step of steps) await take(scene, step);
      // The server is well again: in two rounds everybody knows.
      for (let round = 0; round < 4; round += 1) {
        await scene.settle();
        scene.answer();
        await scene.settle();
        scene.clock.turn(2 * REFRESH_MS);
      }
      const known = scene.watchers.map(({ version }) => version);
      assert.deepEqual(
        known,
        scene.watchers.map(() => String(scene.version)),
      );
    });
    await fc.assert(property, { numRuns: 500 });
  });

  it('wait as long as it was said, and shorter behind the first failures, but never shorter than a well one does', async () => {
    const scene = new Scene();
    scene.join('a');
    scene.clock.turn(0);
    scene.answer();
    await scene.settle();
    scene.clock.turn(REFRESH_MS - 1);
    assert.equal(scene.asked, 1);
    scene.clock.turn(1);
    scene.clock.turn(0);
    assert.equal(scene.asked, 2);
    // Random below 0.5, 1, 2, 4 and 8 s, of which the test's randomness makes the shortest.
    for (let failure = 1; failure <= 5; failure += 1) {
      scene.spoil('failed');
      scene.clock.turn(1);
      scene.clock.turn(0);
      assert.equal(scene.asked, 2 + failure);
    }
    scene.spoil('failed');
    scene.clock.turn(REFRESH_MS - 1);
    assert.equal(scene.asked, 7);
    scene.clock.turn(1);
    scene.clock.turn(0);
    assert.equal(scene.asked, 8);
    assert.deepEqual(
      scene.failures,
      Array.from({ length: 6 }, () => 'failed'),
    );
  });

  it('say no version for who has come last, though his name has been told before, until one is answered', async () => {
    const scene = new Scene();
    scene.join('a');
    scene.clock.turn(0);
    scene.answer();
    await scene.settle();
    const second = scene.join('a');
    scene.clock.turn(0);
    assert.equal(scene.question?.version, '');
    scene.spoil('503');
    scene.clock.turn(1);
    scene.clock.turn(0);
    assert.equal(scene.question?.version, '');
    // Whoever comes meanwhile is asked for at once behind the answer.
    const third = scene.join('a');
    scene.answer();
    await scene.settle();
    scene.clock.turn(100);
    assert.equal(scene.question?.version, '');
    scene.answer();
    await scene.settle();
    assert.deepEqual([second.version, third.version], ['1', '1']);
    scene.clock.turn(REFRESH_MS);
    scene.clock.turn(0);
    assert.equal(scene.question?.version, '1');
  });

  it('end with the last who wants something, and begin again with the next', async () => {
    const scene = new Scene();
    const first = scene.join('a');
    scene.clock.turn(0);
    scene.answer();
    await scene.settle();
    scene.leave(first);
    scene.clock.turn(10 * REFRESH_MS);
    assert.deepEqual([scene.asked, scene.question, scene.clock.timerCount], [1, undefined, 0]);
    scene.join('b');
    scene.clock.turn(0);
    assert.deepEqual([scene.question?.names, scene.question?.version], [['b'], '']);
  });
});
