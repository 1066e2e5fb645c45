// Changes of a request's head that are known only with an attempt: the name of the host that was chosen, the number of
// the attempt. The head is text by then. Made once per snapshot, for the routes that want any of it.

/** What may stand in a Host line. Names come from the configuration and from DNS. */
const HOSTNAME = /^[\x21-\x7e]+$/;

export class AttemptEdits {
  readonly #usesUpstreamHostname: boolean;
  /** `\r\n<name>: `, or empty when attempts are not counted. */
  readonly #countStart: string;

  /** @param countHeader name of the header that counts attempts and stands in every head as 1; empty without it. */
  constructor(usesUpstreamHostname: boolean, countHeader: string) {
    this.#usesUpstreamHostname = usesUpstreamHostname;
    this.#countStart = countHeader === '' ? '' : `\r\n${countHeader}: `;
  }

  /**
   * @param head with Host as its first header line, as RequestHead.replaceHost() puts it, where the host is replaced.
   * @param hostname empty to leave the host.
   */
  apply(head: string, hostname: string, attempt: number): string {
    const named = this.#usesUpstreamHostname && HOSTNAME.test(hostname) ? withHost(head, hostname) : head;
    if (attempt === 1 || this.#countStart === '') return named;
    return named.replace(`${this.#countStart}1\r\n`, () => `${this.#countStart}${attempt}\r\n`);
  }
}

function withHost(head: string, hostname: string): string {
  const start = head.indexOf('\r\n') + 2;
  const colon = head.indexOf(':', start);
  return `${head.slice(0, colon)}: ${hostname}${head.slice(head.indexOf('\r\n', colon))}`;
}
