# known_stacks.rb SECONDS [ROUNDS]: CPU time in stacks that the program itself writes down. Runs on 2.5 and later.
#
# JSON on standard output: "stacks", each root first with [label, file, line] for every frame below burn(), as
# caller_locations tells; "burn", the same with its last line; "version". The time goes into burn().
require "json"

$recorded = []
$recording = true

def burn
  tell if $recording
  i = 0
  total = 0
  while i < 6000
    total += i * i % 7
    i += 1
  end
  total
end

def tell
  stack = caller_locations(2).reverse.map { |at| [at.label, at.path, at.lineno] }
  $recorded << stack unless $recorded.include?(stack)
end

def recursion(depth)
  return burn if depth == 0
  recursion(depth - 1) + 1
end

def blocks
  [1, 2].each do |one|
    one.times do
      burn
    end
  end
end

def mapped
  { a: 1 }.map { |_, value| [value].map { |v| burn + v }.sum }.first
end

def generator
  numbers = Enumerator.new do |to|
    to << burn
    to << burn
  end
  burn; numbers.next + numbers.next
end

def fiber
  burn; Fiber.new { burn }.resume
end

def yields
  yield 1
end

def given
  yields { |value| burn + value }
end

def passed(&block)
  yields(&block)
end

def escaping
  value = 1
  keep = lambda { burn + value }
  passed { |more| keep.call + more }
end

def rescued
  begin
    raise ArgumentError, "no"
  rescue ArgumentError
    burn
  ensure
    burn
  end
end

def thrown
  catch(:done) do
    burn
    throw :done
  end
end

module Sold
  def self.helper
    burn
  end

  def sell(price)
    burn + price
  end
end

class Shop
  include Sold
  attr_reader :name

  def initialize
    burn
  end

  def method(one, two)
    burn + one + two
  end

  def self.of_class
    burn
  end

  class << self
    def of_singleton
      burn
    end
  end

  def <=>(other)
    burn
    0
  end
  include Comparable

  def to_s
    burn
    "shop"
  end

  def method_missing(name, *more)
    return super unless name == :missing
    burn
  end

  def respond_to_missing?(*)
    true
  end

  define_method(:defined) { burn }
  define_method(:defined_deep) { [1].each { burn } }

  class Inner
    def call
      burn
    end
  end
end

def over_several_lines
  shop = Shop.new
  shop.method(
    1,
    Shop.of_class,
  ) +
    shop.sell(
      2
    )
end

def class_methods
  Shop.of_class
  Shop.of_singleton
  Sold.helper
  Shop::Inner.new.call
end

def by_operator
  Shop.new > Shop.new
end

def by_interpolation
  "#{Shop.new}"
end

def dynamic
  shop = Shop.new
  shop.missing
  shop.defined
  shop.defined_deep
  shop.send(:sell, 1)
  shop.public_send(:sell, 2)
  shop.instance_eval { burn }
  shop.instance_exec(1) { |one| burn + one }
  Shop.class_eval { burn }
end

def singleton
  one = Object.new
  def one.only
    burn
  end
  one.only
end

def evaluated
  eval("burn + 1", binding, "given.rb", 40)
  eval("burn; def from_text\n  burn\nend", TOPLEVEL_BINDING, "given.rb", 50)
  from_text
end

def sorted
  [3, 1, 2].sort_by { |value| burn; -value }
end

def größe
  burn
end

def long_function(n)
  a = n + 1; a += 1; a += 1; a += 1; a += 1; a += 1; a += 1; a += 1
  a += 1; a += 1; a += 1; a += 1; a += 1; a += 1; a += 1; a += 1
  a += 1; a += 1; a += 1; a += 1; a += 1; a += 1; a += 1; a += 1
  burn
  a += 1; a += 1; a += 1; a += 1; a += 1; a += 1; a += 1; a += 1
  #{"a comment"}



  burn
  a
end

eval(<<~TEXT, TOPLEVEL_BINDING, "long.rb", 1)
  def very_long(n)
  #{(["  n += 1"] * 900).join("\n")}
    burn
  #{(["  n += 1", "", ""] * 300).join("\n")}
    burn
  end
TEXT

def round
  recursion(0)
  recursion(30)
  blocks
  mapped
  generator
  fiber
  given
  escaping
  rescued
  thrown
  over_several_lines
  class_methods
  by_operator
  by_interpolation
  dynamic
  singleton
  evaluated
  sorted
  größe
  long_function(1)
  very_long(1)
end

LAST = method(:burn).source_location[1] + 8
finish = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + ARGV[0].to_f
rounds = 0
while rounds < ARGV[1].to_i || Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < finish
  round
  rounds += 1
  $recording = false
end
puts JSON.generate("version" => RUBY_VERSION, "rounds" => rounds, "stacks" => $recorded, "file" => __FILE__,
                   "burn" => [method(:burn).source_location[1], LAST])
