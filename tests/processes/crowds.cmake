# Tests of 66 processes that poll the network take turns: beside each other they starve, and miss the bound of a failure.
foreach(test IN LISTS hosts_test_slow)
  if(test MATCHES "^LongHostInit")
    set_tests_properties(${test} PROPERTIES RESOURCE_LOCK crowd_of_hosts)
  endif()
endforeach()
