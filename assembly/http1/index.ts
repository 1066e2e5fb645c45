// HTTP/1.1 head parser and writer. One instance per worker over a private memory of the layout's fixed size: no
// heap, no static data, input never written. Targets http1 (SIMD) and http1-scalar of asconfig.json.

import { LAYOUT_VERSION } from '../layout/http1';

export { parseRequest } from './request';
export { parseResponse } from './response';
export { writeRequest, writeResponse } from './write';

export function layoutVersion(): u32 {
  return LAYOUT_VERSION;
}
