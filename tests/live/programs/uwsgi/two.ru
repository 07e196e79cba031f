# One of two applications in one process (two.py is the other): spends CPU time, answers with the process and the seconds spent.
def cpu
  Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
end

def ruby_works(finish)
  number = 1
  while cpu < finish
    500.times { number = (number * 1103515245 + 12345) & 0xffffffff }
  end
  number
end

run(lambda do |environment|
  start = cpu
  ruby_works(start + 0.02)
  [200, {"Content-Type" => "text/plain"}, ["#{Process.pid} #{cpu - start}\n"]]
end)
