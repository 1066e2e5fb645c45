// The example of a service of gRPC for clients of JSON, as it stands.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { openBookshop } from '../../support/bookshop.ts';
import { startExample } from '../../support/examples.ts';

it('books by their path, by a body, and one after another', async () => {
  await using shop = await openBookshop();
  await using weir = await startExample('transcoding.yaml', { 9090: shop.port });
  const url = `http://127.0.0.1:${(await weir.listeners()).get('web')!.port}`;
  const get = async (path: string): Promise<unknown> => (await fetch(`${url}${path}`)).json();
  assert.deepEqual(await get('/v1/shelves/3/books/7'), { id: '7', title: 'book 7 of 3', genre: 'GENRE_NOVEL' });
  assert.deepEqual(await get('/v1/books?title_part=em'), [{ title: 'Emma' }]);
  const body = JSON.stringify({ title: 'Emma', authors: ['Jane Austen'] });
  const created = await fetch(`${url}/v1/shelves/3/books`, { method: 'POST', body });
  assert.deepEqual(await created.json(), { id: '9', title: 'Emma', authors: ['Jane Austen'] });
  const missing = await fetch(`${url}/v1/shelves/3/books/404`);
  assert.deepEqual([missing.status, await missing.json()], [404, { code: 5, message: 'nö such book' }]);
});
