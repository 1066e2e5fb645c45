import { type AdminResponse, JSON_TYPE } from '../../response.ts';

/** An answer that the page alone reads: no other site may take it in, whatever it thinks that it is. */
export function pageJson(body: object | AsyncIterable<string>): AdminResponse {
  const headers = { 'cross-origin-resource-policy': 'same-origin' };
  return {
    status: 200,
    contentType: JSON_TYPE,
    headers,
    body: Symbol.asyncIterator in body ? body : JSON.stringify(body),
  };
}
