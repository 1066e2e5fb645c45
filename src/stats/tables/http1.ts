// http1.*: what connections of clients over HTTP/1 count, with a listener for HTTP; cluster.<name>.http1.*: the same of those to
// its hosts, shown from the first one on.

import { statTable } from '../stat-table.ts';

export const HTTP1_STATS = statTable({
  dropped_headers_with_underscores: 'counter',
  metadata_not_supported_error: 'counter',
  requests_rejected_with_underscores_in_headers: 'counter',
  response_flood: 'counter',
});
