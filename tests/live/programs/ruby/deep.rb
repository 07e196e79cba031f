# deep.rb SECONDS DEPTH: CPU time in leaf(), which as many calls of down() lead to, every tenth through a block that outlives its
# method. Runs on 2.5 and later.
def leaf
  i = 0
  i += 1 while i < 20000
end

def given(&block)
  block.call
end

def down(depth)
  return leaf if depth == 0
  return given { down(depth - 1) } if depth % 10 == 0
  down(depth - 1)
end

finish = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + ARGV[0].to_f
while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < finish
  down(ARGV[1].to_i)
end
