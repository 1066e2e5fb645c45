// The filter of own-filter.yaml: clients send a key, the service behind hears whose it is.

/** @type {import('weir-proxy').HttpFilterDefinition} */
export default {
  checkConfig({ clients }) {
    if (typeof clients !== 'object' || clients === null) throw new TypeError('clients: expected names by their keys');
  },

  create({ clients }, context) {
    const refused = context.counter('refused');
    const names = new Map(Object.entries(clients));
    return (stream) => ({
      decodeHeaders(headers) {
        const name = names.get(headers.get('x-api-key'));
        headers.remove('x-api-key');
        if (name !== undefined) {
          headers.set('x-client', name);
          return 'continue';
        }
        refused.add();
        stream.reply({ status: 401, body: 'who are you?\n' });
        return 'stop';
      },
    });
  },
};
