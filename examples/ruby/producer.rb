# Puts tasks: plain, with a priority, many at once, at most once, and one whose end it awaits.
#
# Install redis-rb (Debian: ruby-redis) and run: ruby producer.rb
# PINPRIQ_URL names the server, by default pinpriq://127.0.0.1:7251.
require "redis"

URL = ENV.fetch("PINPRIQ_URL", "pinpriq://127.0.0.1:7251")

# Connects to the first server of a URL such as pinpriq://a:7251,b:7251 that answers. redis-rb knows
# the scheme of Redis, and one server.
def connected(url, **options)
  parts = url.match(%r{\A(?:pinpriq|redis)(s?)://(.*@)?([^/@]+)\z}) or raise "PINPRIQ_URL is wrong"
  encrypted, user, servers = parts.captures
  servers = servers.split(",")
  servers.each do |server|
    pinpriq = Redis.new(url: "redis#{encrypted}://#{user}#{server}", **options)
    pinpriq.ping
    return pinpriq
  rescue Redis::BaseConnectionError
    raise if server.equal?(servers.last)
  end
end

def expect(seen, wanted)
  raise "expected #{wanted.inspect} and got #{seen.inspect}" unless seen == wanted
end

# redis-rb gives up after 5 s by default. That must be longer than any WAIT.
pinpriq = connected(URL, timeout: 60)

# PUT returns the id of the new task. The first task creates the queue.
puts "put task #{pinpriq.call("PUT", "ruby-mails", "to: ann")}"

# A lower number is more urgent; without PRIORITY it is 0. A TTL drops a task that was not taken.
pinpriq.call("PUT", "ruby-mails", "to: bob", "PRIORITY", -1)
pinpriq.call("PUT", "ruby-mails", "to: eve", "PRIORITY", 9, "TTL", 60_000)

# Looking changes nothing: each task is [queue, id, receipt, payload].
seen = pinpriq.call("PEEK", "ruby-mails", "COUNT", 10).map(&:last)
expect(seen, ["to: bob", "to: ann", "to: eve"])

# A pipeline puts many tasks in one round trip.
pinpriq.pipelined { |many| 100.times { |number| many.call("PUT", "numbers", number) } }
expect(pinpriq.call("POP", "numbers", "COUNT", 1000).size, 100)

# redis-rb sends a command again after a lost connection. The key lets both put one task. For a
# minute this is so even if the task is done meanwhile. The reply has the id, and 1 if it is new.
order = ["PUT", "ruby-mails", "to: joe", "UNIQUE", "order 17", "WINDOW", 60_000]
id, is_new = pinpriq.call(*order)
expect(is_new, 1)
expect(pinpriq.call(*order), [id, 0])

# With WAIT the producer learns how its task ended.
worker = Thread.new do
  own = connected(URL, timeout: 60)
  own.call("TAKE", "urgent", "WAIT", 30_000).each do |queue, _id, receipt, _payload|
    own.call("ACK", queue, receipt)
  end
end
_, outcome = pinpriq.call("PUT", "urgent", "now!", "WAIT", 30_000)
worker.join
expect(outcome, "acked")

expect(pinpriq.call("QUEUE", "DROP", "ruby-mails"), 4)

# worker.rb takes from this queue.
pinpriq.call("PUT", "ruby-jobs", "to: zoe")
puts "producer: ok"
