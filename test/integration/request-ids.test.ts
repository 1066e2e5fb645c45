// What an x-request-id decides of tracing, and what it does not where request_id_extension says so.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type JsonObject, managerFaults } from '../support/bootstrap.ts';
import { managerBench, PROTOCOLS, valuesOf } from '../support/manager-bench.ts';

/** Draws 41.9896 of 100. */
const ID = '12345678-1234-4234-9234-123456789abc';
const SAMPLED = ID.replace('-4234-', '-9234-');

function uuid(fields: JsonObject): JsonObject {
  const type = 'type.googleapis.com/envoy.extensions.request_id.uuid.v3.UuidRequestIdConfig';
  return { request_id_extension: { typed_config: { '@type': type, ...fields } } };
}

for (const protocol of PROTOCOLS) {
  describe(`over ${protocol}`, () => {
    // All that is drawn otherwise is 0, which is within every share.
    for (const [name, fields, percent, expected] of [
      ['an identifier draws', {}, 40, ID],
      ['an identifier draws enough', {}, 45, SAMPLED],
      ['an identifier draws nothing', uuid({ use_request_id_for_trace_sampling: false }), 40, SAMPLED],
      ['an identifier draws where it may', uuid({ use_request_id_for_trace_sampling: true }), 40, ID],
      ['an identifier stays as it is', uuid({ pack_trace_reason: false }), 45, ID],
      ['an identifier says why where it may', uuid({ pack_trace_reason: true }), 45, SAMPLED],
      ['an identifier says why unless told', uuid({}), 45, SAMPLED],
    ] as const) {
      test(name, async (t) => {
        const { ask, head } = await managerBench(t, { ...fields, tracing: { random_sampling: { value: percent } } });
        await ask(protocol, { headers: [['x-request-id', ID]] });
        assert.deepEqual(valuesOf(head(), 'x-request-id'), [expected]);
      });
    }
  });
}

test('identifiers of another kind are refused by name', () => {
  const request_id_extension = { typed_config: { '@type': 'type.googleapis.com/google.protobuf.Struct' } };
  const faults = managerFaults({ request_id_extension });
  assert.match(faults.join('\n'), /request_id_extension\.typed_config/);
});
