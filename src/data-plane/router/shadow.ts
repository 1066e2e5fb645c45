// The copy of a request: sent to a cluster of its own, counted there, and answered to nobody.

import { OwnRequest } from './own-request.ts';

export class Shadow extends OwnRequest {
  protected override onHead(): void {}

  protected override onBody(): void {}

  protected override onFailure(): void {}
}
