"""One thread on epoll and a timer that sends an open load, and notes each answer."""
