local id = string.match(redis.call('GET', KEYS[1]) or '', '^%d+:(.*)$')
if id == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
