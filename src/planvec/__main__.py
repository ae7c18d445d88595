from planvec.cli import main

main()
