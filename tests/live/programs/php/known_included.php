<?php

burn();
if (!function_exists("from_include")) {
    function from_include() {
        burn();
    }
}
