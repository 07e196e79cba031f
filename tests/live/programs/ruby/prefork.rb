# prefork.rb SECONDS: two children that a server forks, each busy in its first thread and in another. Runs on 2.5 and later.
def child_work(finish)
  i = 0
  i += 1 while i % 1000 != 0 || Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
end
def in_thread(finish)
  child_work(finish)
end
finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + ARGV[0].to_f
2.times do
  fork do
    t = Thread.new { in_thread(finish) }
    child_work(finish)
    t.join
  end
end
Process.waitall
