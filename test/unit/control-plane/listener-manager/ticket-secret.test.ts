import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TicketSecret } from '../../../../src/control-plane/listener-manager/ticket-secret.ts';
import { MATCHES_ALL } from '../../../support/listeners.ts';

describe('keys of session tickets', () => {
  it('are those of the process before where there was one', () => {
    const before = new TicketSecret();
    const after = new TicketSecret(before.bytes);
    assert.deepEqual(after.keyOf('listener.a.', MATCHES_ALL), before.keyOf('listener.a.', MATCHES_ALL));
    assert.equal(after.keyOf('listener.a.', MATCHES_ALL).length, 48);
  });

  it("are nobody else's", () => {
    const { bytes } = new TicketSecret();
    const secret = new TicketSecret(bytes);
    const keys = [
      secret.keyOf('listener.a.', MATCHES_ALL),
      secret.keyOf('listener.b.', MATCHES_ALL),
      secret.keyOf('listener.a.', null),
      secret.keyOf('listener.a.', { ...MATCHES_ALL, serverNames: ['a.example'] }),
      new TicketSecret().keyOf('listener.a.', MATCHES_ALL),
    ];
    assert.equal(new Set(keys.map((key) => Buffer.from(key).toString('hex'))).size, keys.length);
  });

  it('are made anew where the process before has told none that could be one', () => {
    assert.equal(new TicketSecret(new Uint8Array(3)).bytes.length, 32);
  });
});
