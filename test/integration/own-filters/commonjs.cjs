module.exports = () => () => ({ decodeHeaders: (headers) => headers.set('x-commonjs', 'yes') });
