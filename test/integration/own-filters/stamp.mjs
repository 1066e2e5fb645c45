// A filter as users write one: a module of its own.

/** @type {import('weir-proxy').HttpFilterDefinition} */
export default {
  requestBody: 'none',
  responseBody: 'edits',

  checkConfig({ word }) {
    if (typeof word !== 'string') throw new TypeError('word: expected a string');
  },

  create({ word }, context) {
    const stamped = context.counter('stamped');
    return (stream) => ({
      decodeHeaders(headers) {
        const [{ word: own = word } = {}] = stream.routeConfigs;
        headers.set('x-stamp', `${own} ${headers.method} ${headers.path}`);
        if (headers.get('x-deny') !== undefined) {
          stream.reply({ status: 403, body: 'no\n', headers: { 'content-type': 'text/x-no', 'x-why': 'denied' } });
          return 'stop';
        }
        stamped.add();
      },
      encodeHeaders(headers) {
        headers.append('x-seen', String(headers.status));
      },
      encodeData(data) {
        data.bytes = Buffer.from(data.bytes.toString().toUpperCase());
      },
    });
  },
};
