// Records requests and responses for whoever has asked for it at the admin interface, or into files. Worker thread; step 3 of the request flow.
// While no tap is under way for it, requests go past the filter as if it were not there.

import type {
  BodyData,
  EditableHead,
  FilterContext,
  FilterStatus,
  HttpFilter,
  HttpFilterKind,
  Taps,
  Trailers,
} from '../../../data-plane/index.ts';
import type { TappedFields, TapSession } from '../../../snapshot/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import { TapRecorder } from './recorder.ts';
import type { TapFilterSettings } from './settings.ts';

class TapFilter implements HttpFilter {
  readonly #recorder: TapRecorder;
  /** Time of a head; null where nobody asks for it. */
  readonly #now: () => number | null;

  constructor(recorder: TapRecorder, now: () => number | null) {
    this.#recorder = recorder;
    this.#now = now;
  }

  decodeHeaders(head: RequestHead): FilterStatus {
    this.#recorder.headers('request', requestFields(head), this.#now());
    return 'continue';
  }

  decodeData({ bytes }: BodyData): FilterStatus {
    this.#recorder.data('request', bytes);
    return 'continue';
  }

  decodeTrailers(trailers: Trailers): FilterStatus {
    this.#recorder.trailers('request', trailers.entries());
    return 'continue';
  }

  encodeHeaders(head: EditableHead, status: number): FilterStatus {
    this.#recorder.headers('response', [[':status', String(status)], ...head.entries()], this.#now());
    return 'continue';
  }

  encodeData({ bytes }: BodyData): FilterStatus {
    this.#recorder.data('response', bytes);
    return 'continue';
  }

  encodeTrailers(trailers: Trailers): FilterStatus {
    this.#recorder.trailers('response', trailers.entries());
    return 'continue';
  }

  localReplyBody(bytes: Buffer): void {
    this.#recorder.data('response', bytes);
  }

  onDestroy(): void {
    this.#recorder.end();
  }
}

/** As HTTP/2 names the parts of the first line; the host is among them. */
function requestFields(head: RequestHead): TappedFields {
  return [
    [':authority', head.authority()],
    [':path', head.path()],
    [':method', head.method],
    [':scheme', head.headerByName('x-forwarded-proto') ?? 'http'],
    ...head.entries().filter(([name]) => name !== 'host'),
  ];
}

/** In a chain that was opened before the tap ended. */
const NOTHING: HttpFilter = {};

export const TAP_FILTER: HttpFilterKind = {
  requestBody: 'reads',
  encodes: true,
  responseBody: 'reads',
  isAwake: (settings, { taps }) => sessionOf(settings as TapFilterSettings, taps) !== null,
  compile(settings, context) {
    const { recordsTimes, counter } = settings as TapFilterSettings;
    const { taps, clock } = context;
    const tapped = context.counter(counter);
    const now = recordsTimes ? () => clock.wallMs() : () => null;
    const find = (): TapSession | null => sessionOf(settings as TapFilterSettings, taps);
    const isEnabled = shareOfTap(context, find);
    return () => {
      const session = find();
      if (session === null || !isEnabled()) return NOTHING;
      return new TapFilter(new TapRecorder(taps, session, () => tapped.add(1)), now);
    };
  },
};

/** The filter's own, or the one under way for it; null for none. */
function sessionOf({ configId, own }: TapFilterSettings, taps: Taps): TapSession | null {
  return own ?? taps.find(configId);
}

/** Draws for one exchange. Its odds are those of the tap under way. */
function shareOfTap({ share }: FilterContext, find: () => TapSession | null): () => boolean {
  let of: TapSession | null = null;
  let draw = (): boolean => true;
  return () => {
    const session = find();
    if (session !== of) {
      of = session;
      const enabled = session?.settings.enabled ?? null;
      draw = enabled === null ? () => true : share(enabled);
    }
    return draw();
  };
}
