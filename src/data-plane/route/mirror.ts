// Which clusters get a copy of a request, ready to be asked. Made once per snapshot.

import { isWithin, type RuntimeValues } from '../../base/runtime.ts';
import type { MirrorPolicy } from '../../snapshot/index.ts';
import { compileHeaderEdits, type HeaderEditor } from './header-editor.ts';
import { headerReader } from './header-matcher.ts';
import type { RouteRequest } from './route-request.ts';

export interface Mirror {
  /** Of the cluster that gets a copy of this request; empty for none. */
  clusterFor(request: RouteRequest): string;
  /** The host that the copy names. */
  hostOf(host: string): string;
  /** Null for none. */
  readonly editor: HeaderEditor | null;
}

const SUFFIX = '-shadow';
const PORT = /:\d+$/;

export function compileMirror(policy: MirrorPolicy, runtime: RuntimeValues): Mirror {
  const { cluster, clusterHeader, hostRewrite, appendsHostSuffix } = policy;
  const share = runtime.share(policy.fraction);
  const read = clusterHeader === '' ? null : headerReader(clusterHeader);
  return {
    editor: compileHeaderEdits(policy.headEdits),
    clusterFor: (request) => {
      if (!isWithin(share.value, request.random)) return '';
      return read === null ? cluster : (read(request) ?? '');
    },
    hostOf: (host) => {
      if (hostRewrite !== '') return hostRewrite;
      return appendsHostSuffix ? withSuffix(host) : host;
    },
  };
}

/** In front of the port. */
function withSuffix(host: string): string {
  const port = PORT.exec(host)?.[0] ?? '';
  return host.slice(0, host.length - port.length) + SUFFIX + port;
}
