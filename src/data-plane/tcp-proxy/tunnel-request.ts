// What a TCP proxy asks HTTP proxies for a tunnel with. Made once per snapshot, filled in once per attempt.

import type { TcpTunnelSettings } from '../../snapshot/index.ts';
import { Framing, Method } from '../../wasm/http1.ts';
import type { FormatFacts } from '../format/facts.ts';
import { TextFormatter } from '../format/text-formatter.ts';
import { TextHead } from '../http/text-head.ts';
import { compileHeaderEdits, type HeaderEditor } from '../route/header-editor.ts';

/** What can stand in a request line: what clients say, such as a server name, ends up there. */
const TARGET = /^[!-~]+$/;

export class TunnelRequest {
  readonly settings: TcpTunnelSettings;
  readonly methodId: number;
  /** One of Framing. */
  readonly framing: number;
  readonly #hostname: TextFormatter;
  readonly #edits: HeaderEditor | null;

  constructor(settings: TcpTunnelSettings) {
    this.settings = settings;
    this.methodId = Method[settings.method];
    // A CONNECT has no body but what its tunnel carries; the body of a POST ends when the client does.
    this.framing = settings.method === 'CONNECT' ? Framing.NONE : Framing.UNTIL_CLOSE;
    this.#hostname = new TextFormatter(settings.hostname, { missing: '' });
    this.#edits = compileHeaderEdits(settings.headerEdits);
  }

  /** @returns null when the connection at hand says nothing that can be asked for. */
  headFor(facts: FormatFacts): string | null {
    const hostname = this.#hostname.render(facts);
    if (!TARGET.test(hostname)) return null;
    const { method, postPath } = this.settings;
    const head = new TextHead(`${method} ${method === 'CONNECT' ? hostname : postPath} HTTP/1.1`, '');
    head.replaceHost(hostname);
    this.#edits?.apply(head, { facts });
    return head.text();
  }
}
