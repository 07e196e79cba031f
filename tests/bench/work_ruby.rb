# work_ruby.rb FRAMES [FILE]: busy FRAMES Ruby frames deep, without a pause, until the process is ended. It writes to FILE what it has
# done: pieces of equal work and the process's CPU time in ns, two 64-bit numbers that belong together (the first one again behind
# them tells). Runs on 2.5 and later.
def mix(number)
  number = (number * 1103515245 + 12345) & 0xffffffff
  number ^ number >> 13
end

def piece(number, rounds)
  number = mix(number) while (rounds -= 1) >= 0
  number
end

def without_pause(file)
  number = done = 0
  while true
    number = piece(number, 2000)
    done += 1
    file&.pwrite([done, Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond), done].pack("q3"), 0)
  end
end

def descend(depth, file)
  depth > 0 ? descend(depth - 1, file) : without_pause(file)
end

# <main>, and of what follows the leaf's two
descend(ARGV[0].to_i - 5, ARGV[1] && File.open(ARGV[1], "r+b"))
