/* The process that holds a pod's namespaces: it reaps orphans and ends when asked to. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal) {
  (void)signal;
  _exit(0);
}

static void reap(int signal) {
  (void)signal;
  while (waitpid(-1, 0, WNOHANG) > 0) {
  }
}

int main(void) {
  struct sigaction on_end = {.sa_handler = end};
  struct sigaction on_child = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};
  sigaction(SIGTERM, &on_end, 0);
  sigaction(SIGINT, &on_end, 0);
  sigaction(SIGCHLD, &on_child, 0);
  for (;;) {
    pause();
  }
}
