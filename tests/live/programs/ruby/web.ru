# The requests of web.rb as an application of Sinatra.
require "sinatra/base"
require_relative "web"

class Application < Sinatra::Base
  set :environment, :production
  get("/:name") { Web.spend(params["name"]) }
end

run Application
