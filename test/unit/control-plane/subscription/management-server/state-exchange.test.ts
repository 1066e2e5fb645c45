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

describe('requests in the state of the world', () => {
  it('name what is wanted when they are made, and answer the last response', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('toggle' as const), name: fc.constantFrom(...NAMES) }),
      fc.record({
        kind: fc.constantFrom('request' as const, 'respond' as const, 'refuse' as const, 'stream' as const),
      }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const names = new Set<string>();
        const wanted = { isWildcard: false, names, has: (name: string) => names.has(name) };
        const exchange = new StateExchange({ service: SERVICE, typeUrl: SERVICE.typeUrl.v3 }, wanted);
        exchange.begin();
        let [last, accepted, nonce] = [0, '', ''];
        for (const each of steps) {
          if (each.kind === 'toggle') {
            if (names.delete(each.name)) exchange.went();
            else {
              names.add(each.name);
              exchange.came();
            }
          } else if (each.kind === 'request') {
            if (!exchange.isDue) continue;
            const bytes = exchange.next(undefined);
            const request = decodeMessage(protoSchema().messageType(REQUEST), bytes) as unknown as Request;
            assert.deepEqual([...request.resource_names], [...names]);
            assert.deepEqual([request.version_info, request.response_nonce], [accepted, nonce]);
          } else if (each.kind === 'stream') {
            exchange.begin();
            nonce = '';
          } else {
            last += 1;
            const response = responseOf(last);
            exchange.taking(response);
            assert.equal(exchange.isDue, false);
            exchange.taken(response, each.kind === 'refuse' ? 'is bad' : undefined, false);
            nonce = response.nonce;
            if (each.kind === 'respond') accepted = response.version;
          }
        }
      }),
    );
  });
});
