# jobs.rb SECONDS: a queue's worker: four threads take jobs from a queue, each has its own by turns. Runs on 2.5 and later.
require_relative "web"

def perform(job)
  Web.spend(job)
end

def take_jobs(queue)
  while (job = queue.pop) != :end
    perform(job)
  end
end

queue = SizedQueue.new(8)
workers = Array.new(4) { Thread.new { take_jobs(queue) } }
finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + ARGV[0].to_f
Web::PARTS.each_key { |job| queue << job } while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
workers.each { queue << :end }
workers.each(&:join)
